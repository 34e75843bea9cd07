#include "sight/commands/page_fit.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cli/assert.h"
#include "cli/text.h"
#include "sight/commands/kept_records.h"

namespace outcore::cli {
namespace {

constexpr int kHalvingsMax = 3;      // of what is left after them nobody sees a shape
constexpr uint64_t kSideMax = 4096;  // of a map; recorders write far smaller ones
constexpr uint64_t kCellsMax = uint64_t{1} << 20;

// Counts of all cells, row by row; -n stands for n empty cells. Nothing: it is no such list.
std::optional<std::vector<uint64_t>> cells_of(const Json& list, uint64_t count) {
  std::vector<uint64_t> cells(count);
  uint64_t at = 0;
  for (const Json& item : list) {
    const std::optional<int64_t> n = item.as<int64_t>();
    if (!n || at >= count) return std::nullopt;
    if (*n < 0) {
      at += std::min(count - at, uint64_t{0} - static_cast<uint64_t>(*n));
    } else {
      cells[at++] = static_cast<uint64_t>(*n);
    }
  }
  CLI_CHECK(at <= count);
  return cells;
}

Json list_of(const std::vector<uint64_t>& cells) {
  Json list = Json::array();
  int64_t empty = 0;
  for (const uint64_t n : cells) {
    if (n == 0) {
      ++empty;
      continue;
    }
    if (empty != 0) list.push_back(-empty);
    list.push_back(n);
    empty = 0;
  }
  return list;
}

// A map whose cells are four of this one's; null: it is none.
Json halved_map(const Json& heat) {
  const uint64_t columns = heat.value("columns", uint64_t{0});
  const uint64_t rows = heat.value("rows", uint64_t{0});
  if (columns == 0 || rows == 0 || columns > kSideMax || rows > kSideMax) return {};
  if (columns * rows > kCellsMax) return {};
  const uint64_t wide = (columns + 1) / 2, high = (rows + 1) / 2;
  CLI_CHECK(wide != 0 && wide <= columns && high != 0 && high <= rows);
  Json half = heat;
  half["columns"] = wide;
  half["rows"] = high;
  half["seconds"] =
      heat.value("seconds", 0.0) * static_cast<double>(2 * wide) / static_cast<double>(columns);
  half["bytes"] = heat.value("bytes", uint64_t{0}) / rows * 2 * high;
  for (const char* const kind : {"fills", "evictions", "refaults"}) {
    const auto cells = cells_of(heat[kind], columns * rows);
    if (!cells) return {};
    std::vector<uint64_t> sums(wide * high);
    for (uint64_t at = 0; at < cells->size(); ++at)
      sums[at / columns / 2 * wide + at % columns / 2] += (*cells)[at];
    half[kind] = list_of(sums);
  }
  return half;
}

// Two steps become one: what is in memory is that at its end, all else is added.
Json halved_timeline(const Json& timeline) {
  Json half;
  for (const auto& [name, value] : timeline.members()) {
    if (!value.is_array()) {
      half[name] = name == "step_s" ? Json(2 * value.as<double>().value_or(0)) : value;
      continue;
    }
    const bool is_level = name == "used_bytes" || name == "budget_bytes";
    Json& list = half[name] = Json::array();
    for (size_t i = 0; i < value.size(); i += 2) {
      const bool is_last = i + 1 == value.size();
      const std::optional<double> one = value[i].as<double>();
      const std::optional<double> other = is_last ? std::nullopt : value[i + 1].as<double>();
      if (is_level || !one || !other)
        list.push_back(is_last ? value[i] : value[i + 1]);
      else
        list.push_back(*one + *other);
    }
    CLI_CHECK(list.size() == (value.size() + 1) / 2);
  }
  return half;
}

// Long names of functions, and what a forged record says.
constexpr size_t kNameBytesMax = 300, kTextBytesMax = 4096, kNextBytesMax = 16384;

Json with_short_texts(const Json& json, size_t bytes_max) {
  if (const auto text = json.as<std::string>(); text && text->size() > bytes_max)
    return beginning_of(*text, bytes_max) + "…";
  if (json.is_array()) {
    Json list = Json::array();
    for (const Json& item : json) list.push_back(with_short_texts(item, bytes_max));
    return list;
  }
  if (!json.is_object()) return json;
  Json object = Json::object();
  for (const auto& [name, value] : json.members())
    object[beginning_of(name, kNameBytesMax)] = with_short_texts(value, bytes_max);
  return object;
}

// A command that is cut is another command.
Json short_commands(const Json& commands) {
  Json list = Json::array();
  for (const Json& command : commands)
    if (command.is_text() && command.as<std::string>()->size() <= kNextBytesMax)
      list.push_back(command);
  return list;
}

// Fitting: the records in pieces, whose sizes are known.
class Fitting {
 public:
  Fitting(size_t bytes_max, std::vector<Json>* records) : bytes_max_(bytes_max) {
    for (Json& record : *records) take_apart(std::move(record));
    records->clear();
    for (size_t i = 0; i < runs_.size(); ++i)
      for (File& file : runs_[i].files) least_first_.push_back({&file, i});
    std::stable_sort(least_first_.begin(), least_first_.end(), [](const auto& a, const auto& b) {
      return a.first->waited != b.first->waited ? a.first->waited < b.first->waited
                                                : a.first->read < b.first->read;
    });
  }

  void fit() {
    for (int i = 0; i < kHalvingsMax; ++i) coarsen_maps();
    for (int i = 0; i < kHalvingsMax; ++i) coarsen_timelines();
    leave_out_maps();
    leave_out_sites();
    leave_out_files();
    leave_out_runs();
    leave_out_lists();
  }
  size_t put_together(std::vector<Json>* records) {
    size_t gone = 0;
    for (Run& run : runs_) {
      gone += run.is_gone ? 1 : 0;
      if (run.is_gone) continue;
      if (!run.files.empty()) {
        Json& files = run.json["files"] = Json::array();
        for (File& file : run.files)
          if (!file.is_gone) files.push_back(std::move(file.json));
      }
      if (run.is_coarser || run.files_gone != 0)
        run.json["left_out"] = Json{{"is_coarser", run.is_coarser},
                                    {"files", run.files_gone},
                                    {"touched_bytes", run.touched_bytes_gone}};
      records->push_back(std::move(run.json));
    }
    return gone;
  }

 private:
  struct File {
    Json json;
    double waited = 0, read = 0;
    size_t bytes = 0;
    bool is_gone = false;
  };
  struct Run {
    Json json;  // without its files
    std::vector<File> files;
    size_t bytes = 0, files_gone = 0;
    uint64_t touched_bytes_gone = 0;
    bool is_coarser = false, is_gone = false;
  };

  void take_apart(Json record) {
    Run run;
    for (const Json& file : std::as_const(record)["files"]) {
      run.files.push_back({file, waited_ns_of(file), file["counters"].value("read_bytes", 0.0),
                           script_bytes(file) + 1, false});
      bytes_ += run.files.back().bytes;
    }
    if (!run.files.empty()) record["files"] = Json::array();
    constexpr size_t kLeftOutBytes = 150;  // what may be told of them
    run.json = std::move(record);
    run.bytes = script_bytes(run.json) + kLeftOutBytes;
    bytes_ += run.bytes;
    runs_.push_back(std::move(run));
  }
  bool is_small() const { return bytes_ <= bytes_max_; }
  // The part is another now; what holds it has as many bytes less.
  void replace(const char* name, Json part, Json* json, size_t* bytes) {
    const size_t before = script_bytes((*json)[name]), now = script_bytes(part);
    CLI_CHECK(*bytes >= before && bytes_ >= before);
    (*json)[name] = std::move(part);
    *bytes = *bytes - before + now;
    bytes_ = bytes_ - before + now;
  }

  void coarsen_maps() {
    for (const auto& [file, run] : least_first_) {
      if (is_small()) return;
      Json half = halved_map(std::as_const(file->json)["heat"]);
      if (half.is_null()) continue;
      replace("heat", std::move(half), &file->json, &file->bytes);
      runs_[run].is_coarser = true;
    }
  }
  void coarsen_timelines() {
    for (Run* run : runs_least_first()) {
      if (is_small()) return;
      if (!std::as_const(run->json)["timeline"].is_object()) continue;
      replace("timeline", halved_timeline(run->json["timeline"]), &run->json, &run->bytes);
      run->is_coarser = true;
    }
  }
  void leave_out_maps() {
    for (const auto& [file, run] : least_first_) {
      if (is_small()) return;
      if (!file->json.contains("heat")) continue;
      replace("heat", Json(), &file->json, &file->bytes);
      file->json["is_map_left_out"] = true;
      constexpr size_t kTold = sizeof ",\"is_map_left_out\":true" - 1;
      file->bytes += kTold;
      bytes_ += kTold;
    }
  }
  void leave_out_sites() {
    for (Run* run : runs_least_first()) {
      if (is_small()) return;
      if (std::as_const(run->json)["sites"].empty()) continue;
      replace("why_no_sites", "The places were left out, to keep this page small.", &run->json,
              &run->bytes);
      replace("sites", Json::array(), &run->json, &run->bytes);
    }
  }
  void leave_out_files() {
    for (const auto& [file, at] : least_first_) {
      Run& run = runs_[at];
      if (is_small()) return;
      if (run.files_gone + 1 == run.files.size()) continue;
      CLI_CHECK(!file->is_gone && bytes_ >= file->bytes);
      file->is_gone = true;
      ++run.files_gone;
      run.touched_bytes_gone += file->json.value("touched_bytes", uint64_t{0});
      bytes_ -= file->bytes;
    }
  }
  void leave_out_runs() {
    size_t left = runs_.size();
    for (Run* run : runs_least_first()) {
      if (is_small() || left == 1) return;
      CLI_CHECK(!run->is_gone && bytes_ >= run->bytes);
      run->is_gone = true;
      --left;
      bytes_ -= run->bytes;
      for (const File& file : run->files) bytes_ -= file.is_gone ? 0 : file.bytes;
    }
  }
  // Of which no recorder writes as many as that.
  void leave_out_lists() {
    for (const char* const name :
         {"tuner", "left_to_kernel", "settings", "timeline", "miss_curve", "program"})
      for (Run& run : runs_) {
        if (is_small()) return;
        if (run.is_gone || !run.json.contains(name)) continue;
        Json rest;  // of the program, all but lists
        if (name == std::string_view("program"))
          for (const auto& [member, value] : std::as_const(run.json)[name].members())
            if (!value.is_array()) rest[member] = value;
        replace(name, std::move(rest), &run.json, &run.bytes);
        run.is_coarser = true;
      }
  }
  std::vector<Run*> runs_least_first() {
    std::vector<Run*> runs;
    for (Run& run : runs_) runs.push_back(&run);
    std::stable_sort(runs.begin(), runs.end(), [](const Run* a, const Run* b) {
      return waited_ns_of(a->json) < waited_ns_of(b->json);
    });
    return runs;
  }

  const size_t bytes_max_;
  size_t bytes_ = 0;
  std::vector<Run> runs_;
  std::vector<std::pair<File*, size_t>> least_first_;  // and the number of its run
};

}  // namespace

size_t script_bytes(const Json& json) {
  const std::string text = json.dump();
  constexpr size_t kEscape = sizeof "\\u003c" - 1;
  return text.size() +
         (kEscape - 1) * static_cast<size_t>(std::count(text.begin(), text.end(), '<'));
}

void shorten_texts(Json* record) {
  Json next = short_commands(std::as_const(*record)["verdict"]["next"]);
  Json made = with_short_texts(*record, kTextBytesMax);
  for (const char* const name : {"sites", "settings", "environment", "left_to_kernel", "policy"})
    if (made.contains(name)) made[name] = with_short_texts(made[name], kNameBytesMax);
  if (std::as_const(made)["verdict"].is_object()) made["verdict"]["next"] = std::move(next);
  *record = std::move(made);
}

size_t fit_records(size_t bytes_max, std::vector<Json>* records) {
  CLI_CHECK(records != nullptr);
  size_t bytes = 0;
  for (const Json& record : *records) bytes += script_bytes(record) + 1;
  if (bytes <= bytes_max) return 0;
  Fitting fitting(bytes_max, records);
  fitting.fit();
  return fitting.put_together(records);
}

}  // namespace outcore::cli
