// outcore bench checkpoint: what checkpoints cost, and what is there after a kill.
#include <cerrno>
#include <memory>

#include "bench/checkpoints.h"
#include "bench/commands/bench_figure.h"
#include "bench/progress.h"
#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/interrupts.h"
#include "outcore/store_kind.h"

namespace outcore::cli {
namespace {

// Beyond it threads are held for seconds, while memory is copied.
constexpr uint64_t kMemoryBytesMax = uint64_t{1} << 30;

struct Request {
  bench::CheckpointOptions options;
  double changed = 1;  // percent
  bool is_json = false, is_kills_alone = false;
};

Status check(const Request& request) {
  const bench::CheckpointOptions& o = request.options;
  if (o.size_bytes < (uint64_t{16} << 20) || o.kill_bytes < (64 << 10))
    return Error{EINVAL, "--size is at least 16M, --kill-size 64k"};
  if (o.memory_bytes > kMemoryBytesMax)
    return Error{EINVAL, "--memory-part is at most 1G, of ordinary memory: more is for --size"};
  if (!(request.changed > 0 && request.changed <= 100))
    return Error{EINVAL, "--changed is a percentage, above 0 and at most 100"};
  if (o.threads == 0 || o.threads > 256) return Error{EINVAL, "--threads is 1 to 256"};
  if (!(o.seconds_between >= 0.001 && o.seconds_between <= 3600))
    return Error{EINVAL, "--between is seconds, 0.001 to 3600"};
  const StoreKind* const kind = o.store.empty() ? nullptr : kind_of_scheme(o.store);
  const bool is_image =
      kind != nullptr && kind->checkpoints == StoreKind::Checkpoints::kBySnapshots;
  if (!o.store.empty() && !is_image)
    return Error{EINVAL,
                 "--store is an image of Ceph's (rbd://POOL/IMAGE): name a folder by --dir"};
  if (!o.store.empty() && o.kills != 0)
    return Error{EINVAL, "--kills are of programs with a pool in a folder: leave out --store"};
  if (request.is_kills_alone && o.kills == 0)
    return Error{EINVAL, "--kills-only: say how many by --kills"};
  return {};
}

int run(Request& request) {
  if (Status s = check(request); !s) return report(s.error());
  request.options.changed = request.changed / 100;
  catch_interrupts();
  const auto see = [&](const bench::Figure& figure) { print_figure(figure, request.is_json); };
  if (!request.is_kills_alone)
    if (Status s = bench::measure_checkpoints(request.options, see); !s) return report(s.error());
  if (request.options.kills == 0) return 0;
  bench::Progress bar("kills");
  const Status s = bench::measure_kills(
      request.options, see, [&](uint64_t done) { bar.show(done, request.options.kills, 0); });
  return s.ok() ? 0 : report(s.error());
}

}  // namespace

void add_bench_checkpoint(CommandSyntax& bench) {
  const auto request = std::make_shared<Request>();
  bench::CheckpointOptions& o = request->options;
  bench.add("checkpoint", "Checkpoints of a running program: bytes, pauses, speed, and kills")
      .size("--size", o.size_bytes, "of the region (4G)")
      .size("--budget", o.budget_bytes,
            "of the program (a quarter more than --size, and --memory-part)")
      .at_least(1)
      .size("--memory-part", o.memory_bytes, "of ordinary memory, in each checkpoint (0: none)")
      .option("--changed", request->changed, "percent of the pages, before a later one (1)")
      .option("--threads", o.threads, "that write meanwhile (1)")
      .option("--between", o.seconds_between, "seconds that they write in quiet before each (2)")
      .number("--kills", o.kills, "of a program that checkpoints every 100 ms (0)")
      .flag("--kills-only", request->is_kills_alone, "nothing but the kills")
      .size("--kill-size", o.kill_bytes, "of the region of that program (16M)")
      .number("--seed", o.seed, "the same seed, the same writes (1)")
      .option("--store", o.store, "an image of Ceph's that is made for it (a pool in --dir)")
      .option("--dir", o.dir, "where the data is made (OUTCORE_BENCH_DIR, TMPDIR, /var/tmp)")
      .flag("--json", request->is_json, "one line of JSON a figure")
      .runs([request] { return run(*request); });
}

}  // namespace outcore::cli
