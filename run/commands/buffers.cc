// outcore buffers: the memory that processes share by --buffer, and its limit.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/json.h"
#include "cli/text.h"
#include "outcore/buffers.h"
#include "sight/commands/buffer_limit.h"

namespace outcore::cli {
namespace {

struct Words {
  std::string name;
  uint64_t size_bytes = 0;
  bool is_json = false;
};

void print_json(const std::vector<BufferFacts>& all) {
  Json list = Json::array();
  for (const BufferFacts& buffer : all) {
    Json members = Json::array(), holders = Json::array();
    for (const pid_t member : buffer.members) members.push_back(static_cast<int64_t>(member));
    for (const pid_t holder : buffer.holders) holders.push_back(static_cast<int64_t>(holder));
    list.push_back({{"name", buffer.name},
                    {"limit_bytes", buffer.limit_bytes},
                    {"used_bytes", buffer.used_bytes},
                    {"resident_bytes", buffer.resident_bytes},
                    {"written_bytes", buffer.written_bytes},
                    {"coming_bytes", buffer.coming_bytes},
                    {"files", static_cast<uint64_t>(buffer.files)},
                    {"filled_pages", buffer.filled_pages},
                    {"evicted_pages", buffer.evicted_pages},
                    {"keeping", static_cast<int64_t>(buffer.keeping)},
                    {"takeovers", static_cast<uint64_t>(buffer.takeovers)},
                    {"members", members},
                    {"holders", holders}});
  }
  show_json({{"buffers", list}}, 2);
}

void print_table(const std::vector<BufferFacts>& all) {
  std::printf("%-24s %10s %10s %10s %6s  %s\n", "buffer", "limit", "used", "pages", "files",
              "processes");
  for (const BufferFacts& buffer : all) {
    std::string processes;
    for (const pid_t member : buffer.members) {
      const bool is_holder =
          std::find(buffer.holders.begin(), buffer.holders.end(), member) != buffer.holders.end();
      processes += (processes.empty() ? "" : " ") +
                   (member == 0 ? std::string("?") : std::to_string(member)) +
                   (member != 0 && member == buffer.keeping ? "*" : "") + (is_holder ? "+" : "");
    }
    std::printf("%-24s %10s %10s %10s %6u  %s\n", buffer.name.c_str(),
                format_bytes(buffer.limit_bytes).c_str(), format_bytes(buffer.used_bytes).c_str(),
                format_bytes(buffer.resident_bytes).c_str(), buffer.files, processes.c_str());
  }
}

int list(const Words& words) {
  const Result<std::vector<BufferFacts>> all = list_buffers();
  if (!all) return report(all.error());
  if (words.is_json)
    print_json(all.value());
  else if (all.value().empty())
    std::printf(
        "no process shares a buffer: outcore run --buffer NAME makes one, outcore serve keeps "
        "it\n");
  else
    print_table(all.value());
  return 0;
}

int resize(const Words& words) {
  const Status done = set_buffer_limit(words.name, words.size_bytes);
  return done.ok() ? 0 : report(Error{done.code(), done.message()});
}

int end(const Words& words) {
  const Result<size_t> asked = end_buffer(words.name);
  return asked.ok() ? 0 : report(asked.error());
}

}  // namespace

void add_buffers(CommandSyntax& outcore) {
  CommandSyntax& buffers =
      outcore.add("buffers", "Memory that processes share by `outcore run --buffer NAME`");
  const auto words = std::make_shared<Words>();
  buffers.add("ls", "List the buffers of this user that have members")
      .flag("--json", words->is_json, "one JSON object")
      .footer(
          "limit: of all members together; used: what is in memory, and what members have\n"
          "for themselves. '*': the process that chooses what leaves; '+': one of outcore\n"
          "serve; '?': one in another container.\n"
          "Exit status: 0 done; 1 they cannot be looked for.\nExample:\n  outcore buffers ls")
      .runs([words] { return list(*words); });
  buffers.add("resize", "Change the limit of a buffer while its members run")
      .word("name", words->name, "its name")
      .type("NAME")
      .size("size", words->size_bytes, "the new limit")
      .required()
      .type("SIZE")
      .footer(
          "Exit status: 0 done; 1 nobody is in such a buffer; 2 usage.\nExample:\n"
          "  outcore buffers resize samples 32G")
      .runs([words] { return resize(*words); });
  buffers.add("end", "End the outcore serve that holds a buffer for others")
      .word("name", words->name, "its name")
      .type("NAME")
      .required()
      .footer(
          "Processes that use the buffer go on, and it ends with the last of them.\n"
          "Exit status: 0 it was told to end; 1 nobody holds such a buffer; 2 usage.\nExample:\n"
          "  outcore buffers end samples")
      .runs([words] { return end(*words); });
  buffers.footer(
      "Examples:\n  outcore buffers ls\n  outcore buffers resize samples 32G\n"
      "  outcore buffers end samples");
}

}  // namespace outcore::cli
