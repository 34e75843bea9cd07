// outcore store ls, du, rm, put, get, verify: work on stores without mapping them.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/json.h"
#include "cli/store_copy.h"
#include "cli/text.h"
#include "outcore/store_catalog.h"

namespace outcore::cli {
namespace {

struct Words {
  std::string from, to;
  bool is_json = false, may_replace = false, is_expired_only = false;
};

// Shows "put: 1.2 GiB of 4 GiB" on a terminal, and updates it.
Progress progress_of(const char* verb, uint64_t size_bytes) {
  if (::isatty(STDERR_FILENO) == 0) return [](uint64_t) {};
  return [verb, size_bytes](uint64_t done) {
    std::fprintf(stderr, "\r%s: %s of %s   ", verb, format_bytes(done).c_str(),
                 format_bytes(size_bytes).c_str());
    if (done == size_bytes) std::fputc('\n', stderr);
  };
}

std::string state_of(const StoreInfo& store) {
  if (!store.damage.empty()) return "damaged: " + store.damage;
  if (!store.owner.empty()) return "written by " + store.owner;
  if (store.is_incomplete) return "incomplete: put it again, or remove it";
  if (store.is_expired) return "expired";
  return "";
}

int list(const Words& words) {
  const auto stores = list_stores(words.from);
  if (!stores) return report_about(words.from, stores.error());
  if (words.is_json) {
    Json all = Json::array();
    for (const StoreInfo& s : stores.value())
      all.push_back({{"name", s.name},
                     {"size_bytes", s.size_bytes},
                     {"booked_bytes", s.booked_bytes},
                     {"owner", s.owner},
                     {"lifetime_ms", s.lifetime_ms},
                     {"is_expired", s.is_expired},
                     {"is_incomplete", s.is_incomplete},
                     {"damage", s.damage}});
    show_json({{"stores", all}});
    return 0;
  }
  std::printf("%12s %12s  %s\n", "size", "booked", "name");
  for (const StoreInfo& s : stores.value()) {
    const std::string state = state_of(s);
    std::printf("%12s %12s  %s%s%s\n", format_bytes(s.size_bytes).c_str(),
                format_bytes(s.booked_bytes).c_str(), one_line(s.name).c_str(),
                state.empty() ? "" : "  ", one_line(state).c_str());
  }
  return 0;
}

int usage(const Words& words) {
  const auto bytes = stored_bytes(words.from);
  if (!bytes) return report_about(words.from, bytes.error());
  if (words.is_json)
    show_json({{"stored_bytes", bytes.value()}});
  else
    std::printf("%s\n", format_bytes(bytes.value()).c_str());
  return 0;
}

// The URI with this name instead of its own.
std::string with_name(const std::string& uri, const std::string& name) {
  const size_t question = std::min(uri.rfind('?'), uri.size());
  const size_t host = uri.find("://");
  const size_t slash = host == std::string::npos ? host : uri.find('/', host + 3);
  return uri.substr(0, std::min(slash, question)) + "/" + name + uri.substr(question);
}

int remove(const Words& words) {
  if (!words.is_expired_only) {
    const Status removed = remove_store(words.from);
    return removed ? 0 : report_about(words.from, removed.error());
  }
  const auto stores = list_stores(words.from);
  if (!stores) return report_about(words.from, stores.error());
  int status = 0;
  for (const StoreInfo& store : stores.value()) {
    if (!store.is_expired) continue;
    const Status removed = remove_store(with_name(words.from, store.name), true);
    if (!removed) status = report(removed.error());
    if (removed) std::printf("removed %s\n", one_line(store.name).c_str());
  }
  return status;
}

int copy(const Words& words, const char* verb) {
  const auto from = open_store(words.from);
  if (!from) return report_about(words.from, from.error());
  const auto copied = copy_store_to(*from.value(), words.to, words.may_replace,
                                    progress_of(verb, from.value()->size_bytes()));
  return copied ? 0 : report_about(words.to, copied.error());
}

int put(const Words& words) { return copy(words, "put"); }
int get(const Words& words) { return copy(words, "get"); }

// The checksum that was noted when the store was put; empty: there is none, or it cannot be read.
std::string noted_checksum(const std::string& uri) {
  const auto stores = list_stores(uri);
  if (!stores) return {};
  const auto same = [&](const StoreInfo& s) { return with_name(uri, s.name) == uri; };
  const auto& all = stores.value();
  const auto info = std::find_if(all.begin(), all.end(), same);
  return info == all.end() ? "" : info->checksum;
}

int verify(const Words& words) {
  const auto store = open_store(words.from);
  if (!store) return report_about(words.from, store.error());
  std::shared_ptr<Store> other;
  if (!words.to.empty()) {
    auto opened = open_store(words.to);
    if (!opened) return report_about(words.to, opened.error());
    other = opened.value();
  }
  const std::string noted = other == nullptr ? noted_checksum(words.from) : "";
  const auto compared = compare_stores(*store.value(), other.get(),
                                       progress_of("verify", store.value()->size_bytes()));
  if (!compared) return report({EIO, compared.message()});
  const std::string uri = one_line(store.value()->uri());
  if (const auto at = compared.value().first_difference; at.has_value())
    return report(
        {EIO, uri + " differs from " + one_line(words.to) + " at byte " + std::to_string(*at)});
  const std::string& checksum = compared.value().checksum;
  if (!noted.empty() && noted != checksum)
    return report({EIO, uri + " has the checksum " + checksum + ", and had " + noted +
                            " when it was put: put it again"});
  std::printf("%s: %s read, %s\n", uri.c_str(), format_bytes(store.value()->size_bytes()).c_str(),
              other != nullptr ? "the same as the other"
              : noted.empty()  ? "no checksum: it was not put, or was written since"
                               : "the same as when it was put");
  return 0;
}

CommandSyntax& add(CommandSyntax& store, const char* name, const char* help,
                   const std::shared_ptr<Words>& words, int (*run)(const Words&)) {
  return store.add(name, help).runs([words, run] { return run(*words); });
}

void add_copies(CommandSyntax& store, const std::shared_ptr<Words>& words) {
  constexpr const char* kReplace = "replace what is there";
  add(store, "put", "copy a file into a store", words, put)
      .word("FILE", words->from, "a file, or another store")
      .word("URI", words->to, "the store")
      .flag("--replace", words->may_replace, kReplace)
      .footer("Example:\n  outcore store put hg38.fa redis://node-1:7000/hg38");
  add(store, "get", "copy a store into a file", words, get)
      .word("URI", words->from, "the store")
      .word("FILE", words->to, "a file, or another store")
      .flag("--replace", words->may_replace, kReplace)
      .footer("Example:\n  outcore store get redis://node-1:7000/result result.bin");
  add(store, "verify", "read all of a store, and compare it with a file, or with what was put",
      words, verify)
      .word("URI", words->from, "the store")
      .optional_word("FILE", words->to, "what it should hold")
      .footer(
          "Exit status: 0 all of it could be read, and is the same; 1 otherwise.\n"
          "Example:\n  outcore store verify redis://node-1:7000/hg38 hg38.fa");
}

}  // namespace

void add_store(CommandSyntax& outcore) {
  CommandSyntax& store = outcore.add("store", "stores on servers: ls, du, rm, put, get, verify");
  store.footer(
      "Examples:\n  outcore store put hg38.fa redis://node-1:7000/hg38\n"
      "  outcore store ls redis://node-1:7000/");
  constexpr const char* kJson = "one JSON object in place of text";
  const auto words = std::make_shared<Words>();
  add(store, "ls", "the stores that servers keep", words, list)
      .word("URI", words->from, "redis://HOST:PORT/ or rbd://POOL/")
      .flag("--json", words->is_json, kJson)
      .footer("Example:\n  outcore store ls redis://node-1:7000/");
  add(store, "du", "what a store takes on them", words, usage)
      .word("URI", words->from, "the store")
      .flag("--json", words->is_json, kJson)
      .footer("Example:\n  outcore store du redis://node-1:7000/hg38");
  add(store, "rm", "remove a store", words, remove)
      .word("URI", words->from, "the store")
      .flag("--expired", words->is_expired_only,
            "all whose lifetime is over, in place of the one that is named")
      .footer(
          "Examples:\n  outcore store rm redis://node-1:7000/hg38\n"
          "  outcore store rm --expired rbd://far/");
  add_copies(store, words);
}

}  // namespace outcore::cli
