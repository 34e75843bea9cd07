#include "run/commands/run_hosts.h"

#include <cerrno>
#include <cstdlib>

#include "cli/command.h"
#include "far/commands/far_servers.h"
#include "far/commands/hosts_keeper.h"
#include "outcore/store.h"
#include "outcore/store_kind.h"

namespace outcore::cli {
namespace {

Status check_others(const RunOptions& options, const GivenOption& hosts) {
  const GivenOption store = GivenOption::find(options.store, "--store", "OUTCORE_STORE");
  if (!store.text) return {};
  return hosts.wrong("the memory of hosts is the store, and " + store.place +
                     " names another: leave out one of them");
}

void set_budget(const RunOptions& options, const HostsFile& file) {
  const GivenOption given =
      GivenOption::find(options.runtime[RunOptions::kBudget], "--budget", "OUTCORE_BUDGET");
  if (!given.text) ::setenv("OUTCORE_BUDGET", std::to_string(file.own.bytes).c_str(), 1);
}

}  // namespace

Result<RunHosts> read_run_hosts(const RunOptions& options) {
  const GivenOption hosts = GivenOption::find(options.hosts, "--hosts", "OUTCORE_HOSTS");
  const GivenOption replicas =
      GivenOption::find(options.replicas, "--replicas", "OUTCORE_RUN_REPLICAS");
  ::unsetenv("OUTCORE_HOSTS");
  ::unsetenv("OUTCORE_RUN_REPLICAS");
  RunHosts all;
  if (replicas.text && *replicas.text != "0" && *replicas.text != "1")
    return replicas.wrong("a host's memory has one copy, or none: say 1 or 0");
  all.replicas = replicas.text == "1" ? 1 : 0;
  if (!hosts.text) {
    if (options.replicas) return replicas.wrong("copies of which hosts? Say --hosts FILE");
    return all;
  }
  if (hosts.text->empty()) return hosts.wrong("the file's name is missing: say --hosts FILE");
  if (Status status = check_others(options, hosts); !status) return status.error();
  Result<HostsFile> file = HostsFile::read(*hosts.text);
  if (!file) return file.error();
  if (all.replicas != 0 && file.value().others.size() < 2)
    return Error{EINVAL, file.value().place(file.value().others[0]) +
                             ": the copy of its memory needs another host: add one, or leave out " +
                             replicas.place};
  set_budget(options, file.value());
  const char* const quiet = std::getenv("OUTCORE_RUN_QUIET");
  all.is_quiet = options.is_quiet || (quiet != nullptr && std::string(quiet) == "1");
  all.file = std::move(file.value());
  return all;
}

Status start_run_hosts(const RunHosts& hosts) {
  if (!hosts.file) return {};
  const Result<KeptServers> servers =
      keep_servers(plan_servers(*hosts.file, hosts.replicas), hosts.file->path);
  if (!servers) return servers.error();
  for (const std::string& failure : servers.value().failures)
    if (!hosts.is_quiet) report(Error{EHOSTUNREACH, failure + "; the run goes on without it"});
  ::setenv("OUTCORE_STORE", servers.value().uri.c_str(), 1);
  return {};
}

Status check_far_store(const RunHosts& hosts) {
  const char* const uri = std::getenv("OUTCORE_STORE");
  if (hosts.file || uri == nullptr) return {};
  const StoreKind* const kind = kind_of_scheme(uri);
  if (kind == nullptr || !kind->dies_with_process || !kind->has_authority) return {};
  const auto store = open_store(uri, {.is_writable = true, .may_create = true});
  return store ? Status{} : Error{store.code(), store.message()};
}

}  // namespace outcore::cli
