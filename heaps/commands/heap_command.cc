// outcore heap check, outcore heap info: examine persistent heaps without opening them.
#include <cstdio>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/json.h"
#include "cli/text.h"
#include "heaps/persistent/type_text.h"
#include "outcore/persistent_core.h"

namespace outcore::cli {
namespace {

using heap::persistent::short_type_text;
using heap::persistent::type_text;

struct Words {
  std::string heap;
  bool is_json = false;
};

int check(const Words& words) {
  const auto findings = persistent_heap_check(words.heap);
  if (!findings) return report_about(words.heap, findings.error());
  if (words.is_json)
    show_json({{"heap", words.heap}, {"findings", findings.value()}});
  else if (findings->empty())
    std::printf("%s: nothing is wrong\n", one_line(words.heap).c_str());
  else
    for (const std::string& line : findings.value()) std::printf("%s\n", one_line(line).c_str());
  return findings->empty() ? 0 : kFailed;
}

Json to_json(const PersistentHeapInfo& info) {
  Json objects = Json::array();
  for (const PersistentObject& o : info.objects)
    objects.push_back({{"name", o.name},
                       {"type", one_line(type_text(o.type))},
                       {"offset", o.offset},
                       {"count", o.count},
                       {"element_bytes", o.element_bytes},
                       {"version", o.version}});
  return {{"format", info.format},
          {"is_consistent", info.is_consistent},
          {"version", info.version},
          {"size_bytes", info.size_bytes},
          {"in_use_bytes", info.in_use_bytes},
          {"metadata_bytes", info.metadata_bytes},
          {"objects", objects}};
}

void print(const PersistentHeapInfo& info) {
  const auto line = [](const char* name, const std::string& value) {
    std::printf("%-16s %s\n", name, value.c_str());
  };
  line("format", std::to_string(info.format));
  line("consistent", info.is_consistent ? "yes" : "no: it is open, or was not closed");
  line("version", std::to_string(info.version));
  line("size", format_bytes(info.size_bytes));
  line("in use", format_bytes(info.in_use_bytes));
  line("metadata", format_bytes(info.metadata_bytes));
  line("objects", std::to_string(info.objects.size()));
  for (const PersistentObject& o : info.objects)
    std::printf("  %-16s %llu x %s of %s, version %u\n", one_line(o.name).c_str(),
                static_cast<unsigned long long>(o.count), format_bytes(o.element_bytes).c_str(),
                one_line(short_type_text(type_text(o.type))).c_str(), o.version);
}

int tell(const Words& words) {
  const auto info = persistent_heap_info(words.heap);
  if (!info) return report_about(words.heap, info.error());
  if (words.is_json)
    show_json(to_json(info.value()));
  else
    print(info.value());
  return 0;
}

CommandSyntax& add(CommandSyntax& heap, const char* name, const char* help,
                   const std::shared_ptr<Words>& words, int (*run)(const Words&)) {
  return heap.add(name, help)
      .word("HEAP", words->heap, "the heap's file, or store")
      .flag("--json", words->is_json, "one JSON object in place of text")
      .runs([words, run] { return run(*words); });
}

}  // namespace

void add_heap(CommandSyntax& outcore) {
  CommandSyntax& heap = outcore.add("heap", "look at a persistent heap: check, info");
  heap.footer("Examples:\n  outcore heap check graph.heap\n  outcore heap info graph.heap");
  const auto words = std::make_shared<Words>();
  add(heap, "check", "all that is wrong with its headers and metadata", words, check)
      .footer(
          "One line a finding. Exit status: 0 nothing is wrong, 1 something is, or it could not be "
          "read.\nThe objects themselves are not looked at: only their program knows them.\n"
          "Example:\n  outcore heap check graph.heap");
  add(heap, "info", "its sizes, and the objects with names", words, tell)
      .footer("Example:\n  outcore heap info graph.heap --json");
}

}  // namespace outcore::cli
