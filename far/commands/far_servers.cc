#include "far/commands/far_servers.h"

#include <sys/random.h>

#include <algorithm>

#include "cli/text.h"
#include "far/commands/host_address.h"

namespace outcore::cli {
namespace {

using State = HostServer::State;

std::string some_password() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return {};
  std::string text;
  for (const unsigned char byte : bytes) text += format("%02x", byte);
  return text;
}

ServerPlan plan_server(const HostsFile& file, const Host& host) {
  ServerPlan plan{.host = host, .place = file.place(host), .memory_bytes = host.bytes};
  const Result<HostAddress> found = find_address(host.name);
  if (!found) {
    plan.why_not = found.message();
    return plan;
  }
  plan.address = found.value().text;
  // A user's name means the rights of another user, on this machine, too.
  plan.is_started_here = found.value().is_here && host.user.empty();
  return plan;
}

// A copy on another machine cannot reach its server through this machine's loopback.
void leave_loopback(std::vector<ServerPlan>& plans) {
  const auto is_loopback = [](const ServerPlan& plan) {
    return plan.address.starts_with("127.") || plan.address == "::1";
  };
  const auto other = std::find_if(plans.begin(), plans.end(), [&](const ServerPlan& plan) {
    return plan.why_not.empty() && !is_loopback(plan);
  });
  if (other == plans.end()) return;
  for (ServerPlan& plan : plans) {
    if (!is_loopback(plan)) continue;
    const Result<std::string> address = own_address_toward(other->address);
    if (address)
      plan.address = address.value();
    else
      plan.why_not = address.message();
  }
}

}  // namespace

std::vector<ServerPlan> plan_servers(const HostsFile& file, int replicas) {
  std::vector<ServerPlan> plans;
  for (const Host& host : file.others) plans.push_back(plan_server(file, host));
  if (replicas == 0) return plans;
  leave_loopback(plans);
  const size_t count = plans.size();
  for (size_t i = 0; i < count; ++i) {
    const ServerPlan& next = plans[(i + 1) % count];
    plans[i].memory_bytes = std::min(plans[i].host.bytes, next.host.bytes) / 2;
    ServerPlan copy = next;
    copy.memory_bytes = plans[i].memory_bytes;
    copy.copy_of = static_cast<int>(i);
    plans.push_back(copy);
  }
  return plans;
}

FarServers::FarServers(const std::vector<ServerPlan>& plans, std::vector<std::string> ssh)
    : access_{std::move(ssh), some_password()} {
  for (const ServerPlan& plan : plans) {
    has_copies_ |= plan.copy_of != -1;
    servers_.push_back(std::make_unique<HostServer>(plan, access_));
  }
}

void FarServers::start() {
  for (const auto& server : servers_)
    if (access_.password.empty())
      server->fail("no random number for a password: look at getrandom");
    else if (server->plan().copy_of == -1)
      server->start(nullptr);
}

bool FarServers::is_settled() const {
  return std::none_of(servers_.begin(), servers_.end(), [](const auto& server) {
    return server->state() == State::kIdle || server->state() == State::kStarting;
  });
}

void FarServers::give_up(int seconds) {
  for (const auto& server : servers_)
    if (server->state() == State::kIdle || server->state() == State::kStarting)
      server->fail("it was not ready within " + std::to_string(seconds) + " s");
}

std::vector<std::string> FarServers::failures() const {
  std::vector<std::string> all;
  for (const auto& server : servers_)
    if (server->state() == State::kNever || server->state() == State::kDead)
      all.push_back(server->plan().place + ": " + name_of(*server) + ": " + server->why());
  return all;
}

bool FarServers::has_one() const {
  return std::any_of(servers_.begin(), servers_.end(),
                     [](const auto& server) { return server->state() == State::kUp; });
}

std::string FarServers::uri() const {
  std::string hosts;
  for (size_t i = 0; i < servers_.size(); ++i) {
    const HostServer& server = *servers_[i];
    if (server.state() != State::kUp || server.plan().copy_of != -1) continue;
    hosts += (hosts.empty() ? "" : ",") + server.address();
    if (const HostServer* const copy = copy_of(i)) hosts += "+" + copy->address();
  }
  return "far://:" + access_.password + "@" + hosts + "?replicas=" + (has_copies_ ? "1" : "0");
}

void FarServers::add_outputs(std::vector<pollfd>* all) const {
  for (const auto& server : servers_)
    if (server->output() != -1) all->push_back({server->output(), POLLIN, 0});
}

std::vector<std::string> FarServers::read_output() {
  std::vector<std::string> lost;
  for (size_t i = 0; i < servers_.size(); ++i) {
    HostServer& server = *servers_[i];
    const State before = server.state();
    server.read_output();
    if (before == State::kUp && server.state() == State::kDead) lost.push_back(loss_of(i));
  }
  for (const auto& server : servers_) {
    if (server->state() != State::kIdle || server->plan().copy_of == -1) continue;
    const HostServer& primary = *servers_[static_cast<size_t>(server->plan().copy_of)];
    if (primary.state() == State::kUp)
      server->start(&primary);
    else if (primary.state() == State::kNever || primary.state() == State::kDead)
      server->fail("there is nothing to copy");
  }
  return lost;
}

void FarServers::beat() {
  for (const auto& server : servers_) server->beat();
}

bool FarServers::has_elsewhere() const {
  return std::any_of(servers_.begin(), servers_.end(),
                     [](const auto& server) { return !server->plan().is_started_here; });
}

void FarServers::end() {
  for (const auto& server : servers_) server->end();
}

bool FarServers::are_gone() {
  return std::all_of(servers_.begin(), servers_.end(),
                     [](const auto& server) { return server->is_gone(); });
}

void FarServers::kill() {
  for (const auto& server : servers_) server->kill();
}

std::string FarServers::name_of(const HostServer& server) const {
  const int primary = server.plan().copy_of;
  return server.plan().host.title() +
         (primary == -1 ? ""
                        : " (the copy of " +
                              servers_[static_cast<size_t>(primary)]->plan().host.title() + ")");
}

std::string FarServers::loss_of(size_t index) const {
  const HostServer& server = *servers_[index];
  const HostServer* const copy = copy_of(index);
  const int primary = server.plan().copy_of;
  const std::string what = "the server on " + name_of(server) + " at " + server.address() +
                           " died" + (server.why().empty() ? "" : " (" + server.why() + ")") + ": ";
  if (copy != nullptr && copy->state() == State::kUp)
    return what + "the run goes on by its copy on " + copy->plan().host.title() +
           ", of which there is no other";
  if (primary != -1 && servers_[static_cast<size_t>(primary)]->state() == State::kUp)
    return what + "what " + servers_[static_cast<size_t>(primary)]->plan().host.title() +
           " holds has no copy any more";
  return what + "what it held is lost, and using that fails with EIO";
}

const HostServer* FarServers::copy_of(size_t index) const {
  for (const auto& server : servers_)
    if (server->plan().copy_of == static_cast<int>(index)) return server.get();
  return nullptr;
}

}  // namespace outcore::cli
