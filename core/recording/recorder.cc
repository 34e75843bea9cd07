#include "core/recording/recorder.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/wait.h"
#include "core/recording/run_facts.h"
#include "outcore/store_catalog.h"

namespace outcore::recording {
namespace {

using base::Json;
using published::Event;
using published::EventKind;
using published::EventRing;
using published::Layout;
using published::StoreSlot;

// A number that the page alone has, of its cache.
constexpr uint32_t kCacheMask = (1 << 24) - 1;
uint64_t name_of(uint32_t cache, uint64_t page) { return uint64_t{cache} << 40 | page; }
uint32_t cache_of(uint64_t name) { return static_cast<uint32_t>(name >> 40); }
uint64_t page_of(uint64_t name) { return name & (EventRing::kPagesMax - 1); }
uint64_t brought_in(const Counters& counters) { return counters.fills + counters.prefetch_fills; }

}  // namespace

Recorder::Recorder(std::shared_ptr<published::Sheet> sheet, std::function<std::string()> policy,
                   std::function<BufferState()> buffer)
    : sheet_(std::move(sheet)),
      policy_(std::move(policy)),
      buffer_(std::move(buffer)),
      start_ns_(os::now_ns()),
      started_ns_(static_cast<uint64_t>(
          std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count())),
      curve_(policy_(),
             std::max<uint64_t>(sheet_->memory().budget.limit.load(), base::kSystemPage)) {}

Result<std::unique_ptr<Recorder>> Recorder::start(std::shared_ptr<published::Sheet> sheet,
                                                  std::function<std::string()> policy,
                                                  std::function<BufferState()> buffer) {
  OC_CHECK(sheet != nullptr);
  if (!sheet->has_event_memory())
    return Error{ENOMEM, "record events: there is no memory for them"};
  std::unique_ptr<Recorder> recorder(
      new Recorder(std::move(sheet), std::move(policy), std::move(buffer)));
  recorder->policy_first_ = recorder->policy_now_ = recorder->policy_();
  recorder->run_command_ = run_command_facts();
  recorder->budget_now_ = recorder->sheet_->memory().budget.limit.load();
  recorder->note_beginning();
  recorder->next_event_ = recorder->sheet_->events().end();
  recorder->sheet_->events().sample_one_in(1);  // an earlier recorder may have left another
  recorder->sheet_->events().turn(true);
  try {
    const os::SignalBlock block;  // inherited: no signal of the program runs on our threads
    recorder->thread_ = std::thread([r = recorder.get()] { r->run(); });
  } catch (const std::system_error& e) {
    return base::system_error(e.code().value(), "start a thread that records", "raise ulimit -u");
  }
  return recorder;
}

void Recorder::note_beginning() {
  find_files();
  const Layout& seen = sheet_->memory();
  latency_before_ += seen.ended.fault_latency();
  for (size_t i = 0; i < known_.size(); ++i) {
    if (known_[i].users == 0) continue;
    known_[i].before = seen.slots[i].counters.sum();
    latency_before_ += seen.slots[i].counters.fault_latency();
  }
  before_ = counters_of_now();
}

Recorder::~Recorder() {
  sheet_->events().turn(false);
  end_thread();
}

void Recorder::end_thread() {
  is_ending_.store(1, std::memory_order_release);
  os::wake_all(&is_ending_);
  if (thread_.joinable()) thread_.join();
}

void Recorder::run() {
  while (is_ending_.load(std::memory_order_acquire) == 0) {
    os::wait(&is_ending_, 0, kPeriodNs);
    try {
      const std::lock_guard<std::mutex> guard(lock_);
      if (!is_finished_) drain();
    } catch (const std::bad_alloc&) {  // the record has a gap
    }
  }
}

double Recorder::seconds_at(uint64_t time_ns) const {
  return static_cast<double>(time_ns - std::min(time_ns, start_ns_)) * 1e-9;
}

void Recorder::find_files() {
  const Layout& seen = sheet_->memory();
  for (size_t i = 0; i < seen.slots.size(); ++i) {
    const StoreSlot& slot = seen.slots[i];
    const uint32_t users = slot.users.load(std::memory_order_acquire);
    if (users % 2 == 0 || slot.is_over.load() || known_[i].users == users) continue;
    if (!slot.is_described.load()) continue;
    std::string uri = slot.uri.get();
    auto found = file_of_uri_.find(uri);
    if (found == file_of_uri_.end()) {
      if (files_.size() == kFilesMax) continue;
      found = file_of_uri_.emplace(uri, static_cast<uint32_t>(files_.size())).first;
      files_.emplace_back().seen.uri = std::move(uri);
      if (files_.size() <= kHeatMapsMax) files_.back().heat = std::make_unique<HeatMap>();
    }
    known_[i] = {users, found->second, ++caches_, {}};
  }
}

void Recorder::drain() {
  const EventRing& ring = sheet_->events();
  // The end before the files: a file that is mapped after the look for files may tell of itself at
  // once, and what it tells would belong to nobody.
  const uint64_t end = ring.end(), begin = next_event_;
  OC_CHECK(begin <= end);
  find_files();
  if (end - next_event_ > EventRing::kEvents) {
    lost_ += end - next_event_ - EventRing::kEvents;
    next_event_ = end - EventRing::kEvents;
  }
  curve_.set_memory(resident_bytes(),
                    std::max<uint64_t>(sheet_->memory().budget.limit.load(), base::kSystemPage));
  for (Event event; next_event_ < end; ++next_event_)
    if (ring.get(next_event_, &event))
      take(event);
    else
      ++lost_;  // overwritten, or its thread has not finished writing it
  if (end - begin > EventRing::kEvents / 2 || out_.size() >= kOutMax) sample_less();
  const double at_s = seconds_at(os::now_ns());
  if (timeline_.is_due(at_s)) note_moment(at_s);
}

void Recorder::sample_less() {
  EventRing& ring = sheet_->events();
  const uint64_t one_in = 2 * ring.sampled_one_in();
  if (one_in > 1 << 20) return;
  ring.sample_one_in(static_cast<uint32_t>(one_in));
  std::erase_if(out_,
                [&](uint64_t name) { return !EventRing::is_in_sample(page_of(name), one_in); });
  curve_.sample_one_in(one_in);
  reuse_.sample_one_in(one_in);
}

uint64_t Recorder::resident_bytes() const {
  uint64_t bytes = 0;
  for (const StoreSlot& slot : sheet_->memory().slots)
    if (slot.users.load() % 2 == 1 && !slot.is_shared.load()) bytes += slot.resident_bytes.load();
  return bytes;
}

void Recorder::take(const Event& event) {
  const uint64_t one_in = sheet_->events().sampled_one_in();
  if (event.slot >= known_.size() || !EventRing::is_in_sample(event.page, one_in)) return;
  const Known& known = known_[event.slot];
  if ((known.users & EventRing::kUsersMask) != event.users || known.users == 0) return;
  File& file = files_[known.file];
  const StoreSlot& slot = sheet_->memory().slots[event.slot];
  const uint64_t page_bytes = slot.page_bytes.load();
  const auto weight = static_cast<double>(one_in);
  const auto heat = [&](HeatMap::Kind kind) {
    if (file.heat != nullptr)
      file.heat->note(kind, seconds_at(event.time_ns), event.page * page_bytes, weight);
  };
  const uint64_t name = name_of(known.cache, event.page);
  switch (event.kind) {
    case EventKind::kFault:
      sites_.note(event, known.file, one_in);
      break;
    case EventKind::kFill:
    case EventKind::kGuess:
      heat(HeatMap::kFills);
      if (out_.erase(name) != 0) heat(HeatMap::kRefaults);
      if (slot.is_shared.load()) {
        // It leaves by others, unseen; that it has left is known when it comes in again.
        if (out_.size() < kOutMax / 2) out_.insert(name);  // none has to be looked at less for it
        break;
      }
      curve_.note_fill(name, page_bytes, event.kind == EventKind::kGuess);
      if (event.kind == EventKind::kFill) reuse_.note_touch(name, page_bytes);
      break;
    case EventKind::kEviction:
      heat(HeatMap::kEvictions);
      if (out_.size() < kOutMax) out_.insert(name);
      curve_.note_eviction(name);
      break;
    case EventKind::kRescue:
      curve_.note_rescue(name);
      if (!slot.is_shared.load()) reuse_.note_touch(name, page_bytes);
      break;
    case EventKind::kWriteBack:
    case EventKind::kCount:
      break;
  }
}

Counters Recorder::counters_of_now() const {
  const Layout& seen = sheet_->memory();
  Counters all;
  constexpr int kTriesMax =
      1000;  // stores come and go; the thread that moves counts may stand still
  for (int tries = 0; tries < kTriesMax; ++tries) {
    const uint32_t moves = seen.moves.load();
    all = seen.ended.sum();
    for (const StoreSlot& slot : seen.slots)
      if (slot.users.load() % 2 == 1 && !slot.is_over.load()) all += slot.counters.sum();
    if (moves % 2 == 0 && seen.moves.load() == moves) break;
  }
  return all;
}

void Recorder::note_decision(double at_s, std::string what) {
  if (decisions_.size() < kDecisionsMax)
    decisions_.push_back(Json{{"at_s", at_s}, {"what", std::move(what)}});
}

// Whose limit holds: that of a buffer, if most of what came in are its pages.
void Recorder::look_at_buffer(const Counters& now) {
  if (buffer_ == nullptr) return;
  buffer_pages_ = 0;
  for (const File& file : files_) buffer_pages_ += file.buffer_pages;
  for (size_t i = 0; i < known_.size(); ++i) {
    const StoreSlot& slot = sheet_->memory().slots[i];
    if (known_[i].users != 0 && known_[i].users == slot.users.load() && slot.is_shared.load())
      buffer_pages_ += brought_in(slot.counters.sum().since(known_[i].before));
  }
  const uint64_t all = brought_in(now);
  buffer_now_ = all - std::min(all, buffer_pages_) <= all / 2 ? buffer_() : BufferState();
}

void Recorder::note_moment(double at_s) {
  const Layout& seen = sheet_->memory();
  Timeline::Moment now;
  now.counters = counters_of_now().since(before_);
  now.budget_bytes = seen.budget.limit.load();
  now.used_bytes = seen.budget.used.load();
  const bool was_of_buffer = !buffer_now_.name.empty();
  look_at_buffer(now.counters);
  const bool is_of_buffer = !buffer_now_.name.empty();
  if (is_of_buffer) {
    now.budget_bytes = buffer_now_.limit_bytes;
    now.used_bytes = buffer_now_.used_bytes;
  }
  if (is_of_buffer != was_of_buffer) budget_now_ = now.budget_bytes;  // another, and none changed
  if (std::string policy = policy_(); policy != policy_now_) {
    note_decision(at_s, "policy: " + policy + " instead of " + policy_now_);
    policy_now_ = std::move(policy);
  }
  if (now.budget_bytes != budget_now_) {
    note_decision(at_s, "budget: " + base::format_bytes(now.budget_bytes) + " instead of " +
                            base::format_bytes(budget_now_));
    budget_now_ = now.budget_bytes;
  }
  timeline_.note(at_s, now);
}

void Recorder::add_counters_of(const StoreSlot& slot, const Counters& before, File* file) {
  RegionMetrics& seen = file->seen;
  seen.size_bytes = std::max(seen.size_bytes, slot.store_bytes.load());
  seen.page_bytes = slot.page_bytes.load();
  if (slot.is_writable.load() || seen.access.empty())
    seen.access = slot.is_writable.load() ? "read-write" : "read-only";
  seen.delivery = slot.delivery.get();
  seen.frames = slot.is_shared.load() ? "buffer" : slot.frames.get();
  seen.is_degraded = slot.is_degraded.load();
  const Counters counted = slot.counters.sum().since(before);
  seen.counters += counted;
  if (slot.is_shared.load()) file->buffer_pages += brought_in(counted);
  const FetchMetrics fetches = slot.fetches.metrics();
  for (size_t i = 0; i < FetchMetrics::kSizes; ++i) seen.fetches.clusters[i] += fetches.clusters[i];
  seen.fetches.left_out += fetches.left_out;
  seen.fetches.left_out_used += fetches.left_out_used;
}

void Recorder::note_end(const published::Entry& entry) {
  const std::lock_guard<std::mutex> guard(lock_);
  if (is_finished_ || !entry.is_published()) return;  // its counts are those of the whole alone
  drain();
  Known& known = known_[static_cast<size_t>(&*entry - sheet_->memory().slots.data())];
  if (known.users != entry->users.load()) return;  // it has no place in the record
  add_counters_of(*entry, known.before, &files_[known.file]);
  // Its pages are gone, which no budget would have saved.
  const auto is_its = [cache = known.cache & kCacheMask](uint64_t name) {
    return cache_of(name) == cache;
  };
  std::erase_if(out_, is_its);
  curve_.keep([&](uint64_t name) { return !is_its(name); });
  reuse_.keep([&](uint64_t name) { return !is_its(name); });
  known = {};
}

Json Recorder::files_json(double seconds) {
  for (size_t i = 0; i < known_.size(); ++i) {
    const StoreSlot& slot = sheet_->memory().slots[i];
    if (known_[i].users == 0 || known_[i].users != slot.users.load()) continue;
    RegionMetrics& seen = files_[known_[i].file].seen;
    add_counters_of(slot, known_[i].before, &files_[known_[i].file]);
    seen.resident_bytes += slot.resident_bytes.load();
  }
  Metrics metrics;
  for (const File& file : files_) metrics.regions.push_back(file.seen);
  const Json all = Json::parse_or_null(metrics.to_json())["regions"];
  Json list = Json::array();
  for (size_t i = 0; i < all.size(); ++i) {
    const RegionMetrics& seen = files_[i].seen;
    const Counters& c = seen.counters;
    Json json = all[i];
    json.erase("address");
    // What was mapped again came in for the first time again: never more than there is.
    const uint64_t first = brought_in(c) - std::min(brought_in(c), c.refaults);
    json["touched_bytes"] =
        std::min(first * seen.page_bytes,
                 base::round_up(seen.size_bytes, std::max<uint64_t>(seen.page_bytes, 1)));
    json["fetches"] = seen.fetches.to_text(seen.page_bytes);
    if (files_[i].heat != nullptr) json["heat"] = files_[i].heat->to_json(seconds, seen.size_bytes);
    list.push_back(std::move(json));
  }
  return list;
}

Json Recorder::curve_json() const {
  Json json;
  json["sampled_one_in"] = std::max(sheet_->events().sampled_one_in(), curve_.sampled_one_in());
  // Pages of a buffer are not in it: when they leave, another process decides, and does not tell.
  const std::vector<MissCurve::Point> points =
      buffer_now_.name.empty() ? curve_.points() : std::vector<MissCurve::Point>();
  if (!points.empty()) json["budget_bytes"] = points.front().budget_bytes;
  const Counters now = counters_of_now().since(before_);
  const auto misses =
      static_cast<double>(brought_in(now) - std::min(brought_in(now), buffer_pages_));
  json["points"] = Json::array();
  for (const MissCurve::Point& point : points)
    json["points"].push_back(
        Json{{"budget_bytes", point.budget_bytes}, {"misses", point.misses * misses}});
  return json;
}

Json Recorder::finish(const Metrics& metrics, const std::map<std::string, std::string>& settings) {
  sheet_->events().turn(false);
  const std::lock_guard<std::mutex> guard(lock_);
  OC_CHECK(!is_finished_);
  drain();
  const double seconds = seconds_at(os::now_ns());
  note_moment(seconds);
  is_finished_ = true;
  Metrics recorded = metrics;
  recorded.counters = metrics.counters.since(before_);
  recorded.fault_latency = metrics.fault_latency.since(latency_before_);
  const Json all = Json::parse_or_null(recorded.to_json());
  Json json;
  json["format"] = "outcore-run";
  json["version"] = 1;
  json["program"] = program_facts(started_ns_, run_command_);
  json["program"]["runtime_started_ns"] = sheet_->memory().started_ns.load();
  json["program"]["seconds"] = seconds;
  json["environment"] = environment_facts();
  json["settings"] = Json::object();  // without passwords: a record, and its page, is sent around
  for (const auto& [name, value] : settings) json["settings"][name] = without_password(value);
  for (const char* name : {"counters", "gauges"}) json[name] = all[name];
  json["latency"] = all["fault_latency"];
  if (!buffer_now_.name.empty())
    json["buffer"] = Json{{"name", buffer_now_.name},
                          {"limit_bytes", buffer_now_.limit_bytes},
                          {"used_bytes", buffer_now_.used_bytes},
                          {"used_bytes_max", buffer_now_.used_bytes_max}};
  json["timeline"] = timeline_.to_json();
  json["files"] = files_json(seconds);
  std::map<uint32_t, std::string> uris;
  for (const auto& [uri, file] : file_of_uri_) uris[file] = uri;
  json["sites"] = sites_.to_json(uris);
  json["sampled_faults"] = sites_.sampled();
  json["miss_curve"] = curve_json();
  json["reuse"] = reuse_.to_json();
  json["policy"] = Json{{"first", policy_first_}, {"last", policy_now_}};
  json["tuner"] = decisions_;
  json["lost_events"] = lost_;
  json["left_to_kernel"] = left_files_json(sheet_->memory());
  return json;
}

}  // namespace outcore::recording
