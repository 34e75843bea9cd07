#include "bench/array_kills.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "bench/array_life.h"
#include "bench/clock.h"
#include "bench/random.h"
#include "cli/text.h"
#include "outcore/arrays.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kLifeNsMax = 300'000'000, kShortLifeNsMax = 5'000'000;
constexpr uint64_t kGraceNs = 300'000'000;  // for those whose fellow is dead

Error wrong(const std::string& what) { return {EILSEQ, what}; }

// What may be there.
struct Expected {
  std::vector<Contents> contents;  // one of these
  bool may_be_missing = false;     // it was being made
};

struct Counts {
  uint64_t finished = 0, absent = 0, compared_bytes = 0, arrays = 0;
  uint64_t open_ns_max = 0;
};

class Killer {
 public:
  Killer(const ArrayKillOptions& options, const std::string& folder)
      : options_(options), random_(options.seed), path_(folder + "/killed.oca") {}

  // One life and what it left. EILSEQ: it is not right.
  Status kill_once(bool is_last) {
    LifeOptions options;
    options.path = path_;
    options.scripts = {options_.seed, options_.bytes_max};
    options.first_number = ++lives_ * kLifeSessionsMax;
    options.processes = some_processes();
    options.contents = contents_;
    auto life = ArrayLife::start(options);
    if (!life) return life.status();
    const uint64_t life_ns = random_.below(random_.below(4) == 0 ? kShortLifeNsMax : kLifeNsMax);
    const bool is_one = random_.below(3) == 0;
    const auto victim = static_cast<unsigned>(random_.below(options.processes));
    const bool has_probe = is_last || random_.below(2) == 0;
    const timespec pause{0, static_cast<long>(life_ns)};
    ::nanosleep(&pause, nullptr);
    // Before anybody is dead nothing may go wrong.
    Status trouble = life->news().trouble.status();
    if (trouble.ok()) trouble = life->news().closing_trouble.status();
    if (is_one) life->kill(victim);
    life->end(is_one ? kGraceNs : 0);
    if (trouble.ok()) trouble = life->news().trouble.status();
    if (!trouble.ok()) return wrong("a process could not go on: " + trouble.message());
    const Expected expected = expect(options, life->news());
    if (Status s = look(expected); !s) return s;
    return has_probe ? probe() : Status();
  }

  // After a wrong one: from nothing.
  void begin_anew() {
    ::unlink(path_.c_str());
    contents_.clear();
    is_there_ = false;
  }
  const Counts& counts() const { return counts_; }

 private:
  unsigned some_processes() {
    const uint64_t kind = random_.below(4);
    return kind < 2 ? options_.processes
                    : std::min<unsigned>(kind == 2 ? 1 : 2, options_.processes);
  }

  // Follows the sessions as far as they have come.
  Expected expect(const LifeOptions& options, const LifeNews& news) {
    Contents contents = options.contents;
    for (unsigned s = 0; s < kLifeSessionsMax; ++s) {
      const SessionNews& session = news.sessions[s];
      const unsigned begun = session.begun, done = session.done;
      if (begun == 0) break;
      const ArrayScript script =
          options.scripts.make(options.first_number + s, options.processes, contents);
      const auto count = [&](Closing closing) {
        return std::count(session.closing, session.closing + options.processes, closing);
      };
      if (done > 0) is_there_ = true;
      if (count(Closing::kDone) == options.processes) {
        contents = script.contents.back();
        ++counts_.finished;
        continue;
      }
      Expected expected;
      expected.may_be_missing = done == 0 && (!is_there_ || script.mode == ArraysMode::kWrite);
      for (unsigned step = done; step <= begun; ++step)
        expected.contents.push_back(script.contents[step]);
      // Nobody can have finished it before all began to close; who hears of a death has not.
      if (count(Closing::kNot) == 0 && count(Closing::kFailed) == 0)
        expected.contents.push_back(script.contents.back());
      else
        ++counts_.absent;
      return expected;
    }
    return {{contents}, !is_there_};
  }

  Status look(const Expected& expected) {
    const uint64_t start_ns = now_ns();
    const auto in = Arrays::open(path_);
    counts_.open_ns_max = std::max(counts_.open_ns_max, now_ns() - start_ns);
    if (in.code() == ENOENT && expected.may_be_missing) {
      contents_.clear();
      is_there_ = false;
      return {};
    }
    if (!in) return wrong("it does not open: " + in.message());
    is_there_ = true;
    std::string all;
    for (const Contents& contents : expected.contents) {
      const Status is = compare(in.value(), contents);
      if (is.ok()) {
        contents_ = contents;
        return {};
      }
      all += (all.empty() ? "" : "; nor as it may be else: ") + is.message();
    }
    return wrong("it is not as it was when the last call returned: " + all);
  }

  Status compare(const Arrays& in, const Contents& contents) {
    for (const ArrayInfo& info : in.list())
      if (!contents.contains(info.name))
        return wrong("'" + info.name + "' is there, and should not be");
    for (const auto& [name, kept] : contents) {
      const auto info = in.info(name);
      if (!info) return wrong(info.message());
      if (info->type != kept.type || info->dims != kept.dims || info->order != kept.options.order ||
          info->tiles != kept.options.tiles)
        return wrong("'" + name + "' has another shape");
      const std::vector<std::byte> right = whole_of(kept);
      std::vector<std::byte> bytes(right.size());
      if (Status s =
              in.load_box(name, kept.type, bytes.data(), Dims(kept.dims.size(), 0), kept.dims);
          !s)
        return wrong(s.message());
      ++counts_.arrays;
      counts_.compared_bytes += bytes.size();
      const auto [is, should] = std::mismatch(bytes.begin(), bytes.end(), right.begin());
      if (is != bytes.end())
        return wrong("'" + name + "' is not what was stored, from element " +
                     std::to_string((is - bytes.begin()) / kept.type.size_bytes) + " of " +
                     std::to_string(bytes.size() / kept.type.size_bytes) + " on");
    }
    return {};
  }

  // A session by somebody else, as the next run of a program would be.
  Status probe() {
    const uint64_t start_ns = now_ns();
    auto out = Arrays::open(path_, ArraysMode::kUpdate);
    counts_.open_ns_max = std::max(counts_.open_ns_max, now_ns() - start_ns);
    if (!out) return wrong("it does not open for the next session: " + out.message());
    const Kept kept{ArrayType::parse("<f8").value(), {1 + random_.below(50'000)}, {}, lives_};
    const auto bytes = whole_of(kept);
    Status s = out->store_whole("probe", kept.type, kept.dims, bytes.data());
    if (s.ok()) s = out->close();
    if (!s.ok()) return wrong("the next session does not work: " + s.message());
    contents_["probe"] = kept;
    is_there_ = true;
    return look({{contents_}, false});
  }

  const ArrayKillOptions& options_;
  Random random_;
  const std::string path_;
  Contents contents_;      // as they were found
  bool is_there_ = false;  // the container
  uint64_t lives_ = 0;
  Counts counts_;
};

}  // namespace

Status measure_array_kills(const ArrayKillOptions& options, const SeeFigure& see,
                           const std::function<void(uint64_t)>& progress) {
  auto folder = OwnFolder::make(options.dir);
  if (!folder) return folder.error();
  Killer killer(options, folder->path());
  Status first;
  uint64_t right = 0;
  for (uint64_t done = 0; done < options.kills; ++done) {
    Status s = killer.kill_once(done + 1 == options.kills);
    if (s.ok()) {
      ++right;
    } else if (s.code() != EILSEQ) {
      return s;
    } else {
      if (first.ok())
        first = Error{EILSEQ, "kill " + std::to_string(done + 1) + " of seed " +
                                  std::to_string(options.seed) + ": " + s.message()};
      killer.begin_anew();
    }
    progress(done + 1);
  }
  const Counts& counts = killer.counts();
  see({"kills, each followed by every finished array whole, others absent", double(right),
       double(options.kills), false, "",
       std::to_string(counts.finished) + " sessions finished, " + std::to_string(counts.absent) +
           " cut off, " + std::to_string(counts.arrays) + " arrays compared (" +
           cli::format_bytes(counts.compared_bytes) + ")"});
  see({"longest opening after a kill", double(counts.open_ns_max) / 1e6, 1000, true, "ms", ""});
  return first;
}

}  // namespace outcore::bench
