// outcore check: what would keep `outcore run` from working with a program, and what to do.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/json.h"
#include "cli/text.h"
#include "outcore/runtime.h"
#include "run/commands/program.h"
#include "run/commands/run_window.h"

namespace outcore::cli {
namespace {

enum class Verdict { kWorks, kInPart, kNot };  // in the order of how bad it is
constexpr const char* kVerdicts[] = {"works", "works in part", "cannot work"};

const char* text_of(Verdict verdict) { return kVerdicts[static_cast<size_t>(verdict)]; }

struct Finding {
  Verdict verdict;
  std::string about;
  std::string text;
  std::string remedy{};
};

struct Examined {
  std::string name;  // as it was given
  std::string path;
  std::vector<Finding> findings;

  Verdict verdict() const {
    Verdict worst = Verdict::kWorks;
    for (const Finding& finding : findings) worst = std::max(worst, finding.verdict);
    return worst;
  }
};

using Names = std::set<std::string, std::less<>>;

// Those of `candidates` that are in `names`, as people read a list; empty: none is.
template <size_t n>
std::string list_those_in(const Names& names, const std::array<const char*, n>& candidates) {
  std::string list;
  for (const char* candidate : candidates)
    if (names.contains(candidate)) list += (list.empty() ? "" : ", ") + std::string(candidate);
  return list;
}

constexpr std::array kMaps = {"mmap", "mmap64", "mremap"};
constexpr std::array kAllocations = {"malloc",         "calloc",        "realloc", "reallocarray",
                                     "posix_memalign", "aligned_alloc", "_Znwm",   "_Znam"};

bool is_of_c_library(const std::string& library) {
  static constexpr std::array kStems = {"libc.so",    "libm.so",     "libpthread.so",
                                        "libdl.so",   "librt.so",    "ld-linux-x86-64.so",
                                        "libutil.so", "libresolv.so"};
  return std::any_of(kStems.begin(), kStems.end(),
                     [&](const char* stem) { return library.starts_with(stem); });
}

// What of its mappings the preload library sees: the calls to libraries, its own and theirs.
Finding mappings_of(const ElfSymbols& symbols) {
  const std::string calls = list_those_in(symbols.imports, kMaps);
  if (!calls.empty()) return {Verdict::kWorks, "mappings", "it calls " + calls};
  std::string others;
  for (const std::string& library : symbols.libraries)
    if (!is_of_c_library(library)) others += (others.empty() ? "" : ", ") + library;
  if (symbols.imports.contains("dlopen"))
    others += (others.empty() ? "" : ", ") + std::string("what it loads later (dlopen)");
  if (!others.empty())
    return {Verdict::kWorks, "mappings", "it does not call mmap itself; these may: " + others};
  const bool has_calls_of_its_own = symbols.imports.contains("syscall");
  return {Verdict::kInPart, "mappings",
          has_calls_of_its_own ? "it does not call mmap, but syscall, which is not seen"
                               : "it does not call mmap, nor uses libraries that could: it maps no "
                                 "files, and there is nothing to take",
          symbols.imports.contains("malloc") ? "its memory can be taken: run --alloc" : ""};
}

// Whose malloc it is. An allocator inside the program is called past any library.
Finding memory_of(const ElfSymbols& symbols) {
  static constexpr std::array<std::array<const char*, 2>, 6> kMarks = {
      {{"je_malloc", "jemalloc"},
       {"mallctl", "jemalloc"},
       {"mi_malloc", "mimalloc"},
       {"tc_malloc", "tcmalloc"},
       {"rpmalloc", "rpmalloc"},
       {"scalable_malloc", "TBB's allocator"}}};
  std::string inside = symbols.definitions.contains("malloc") ? "an allocator" : "";
  for (const auto& [mark, name] : kMarks)
    if (symbols.definitions.contains(mark)) inside = name;
  if (!inside.empty())
    return {Verdict::kInPart, "memory",
            inside +
                " is linked into it: --alloc sees what that asks the system for, not each "
                "allocation",
            "link it with the allocator as a library, or without, to use --alloc"};
  const std::string calls = list_those_in(symbols.imports, kAllocations);
  if (calls.empty()) return {Verdict::kWorks, "memory", "it does not allocate by itself"};
  return {Verdict::kWorks, "memory", "--alloc can take it: it calls " + calls};
}

void add_symbols(const ProgramFile& file, std::vector<Finding>* findings) {
  const int opened = ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened == -1) return;
  const ElfSymbols symbols = read_elf_symbols(opened);
  ::close(opened);
  if (!symbols.has_tables) {
    findings->push_back({Verdict::kWorks, "mappings",
                         "its symbol tables are stripped: what it calls is not known"});
    return;
  }
  findings->push_back(mappings_of(symbols));
  findings->push_back(memory_of(symbols));
}

Finding failure_of(const Program& program) {
  const std::string& missing = program.missing;
  if (program.error == ENOEXEC) {
    const ProgramFile& last = program.files.back();
    if (!last.elf)
      return {Verdict::kNot, "format", missing + " is neither an ELF file nor a script with #!",
              "name the program that reads it, as in outcore run sh " + missing};
    const bool is_library = last.elf->kind == ElfFile::Kind::kSharedObject;
    return {Verdict::kNot, "format",
            missing + (is_library ? " is a library, or linked statically without the mark of a "
                                    "program"
                                  : " is an ELF file, but no program"),
            is_library ? "name a program that uses it" : "link it to a program"};
  }
  if (program.error == EACCES)
    return {Verdict::kNot, "file", missing + " may not be executed",
            "name a file, and give the right (chmod +x)"};
  const bool is_path = missing.find('/') != std::string::npos;
  std::string remedy =
      is_path ? "write a path that is there" : "write its path, or add its folder to PATH";
  if (!program.files.empty())
    remedy = program.files.back().elf ? "it is the loader: install the C library of the program"
                                      : "install it, or change the script's #! line";
  const std::string why = is_path ? " is not there" : " is in no folder of PATH";
  return {
      Verdict::kNot, "file",
      missing +
          (program.error == ENOENT ? why : ": " + std::generic_category().message(program.error)),
      remedy};
}

Examined examine(const std::string& name) {
  const Program program = find_program(name);
  Examined examined{name, program.files.empty() ? name : program.files.front().path, {}};
  auto& findings = examined.findings;
  const bool is_script = program.files.size() > 1;
  for (const ProgramFile& file : program.files) {
    const bool is_first = &file == &program.files.front();
    if (!is_first) findings.push_back({Verdict::kWorks, "script", "it is run by " + file.path});
    if (!file.is_readable)
      findings.push_back({Verdict::kInPart, "file", file.path + " may be executed but not read",
                          "check it as a user who may read it"});
    for (const Obstacle& obstacle : file.obstacles) {
      // What a script starts has the library again.
      const bool is_partial = obstacle.is_for_others || is_script;
      findings.push_back({is_partial ? Verdict::kInPart : Verdict::kNot, obstacle.about,
                          (is_script ? file.path + " " : "") + obstacle.text +
                              (obstacle.is_for_others ? " (not for you, but for others)" : "") +
                              (is_script ? "; programs that the script starts are taken" : ""),
                          obstacle.remedy});
    }
  }
  if (program.error != 0) {
    findings.push_back(failure_of(program));
    return examined;
  }
  const ProgramFile& last = program.files.back();
  if (!last.elf || std::any_of(last.obstacles.begin(), last.obstacles.end(),
                               [](const Obstacle& o) { return !o.is_for_others; }))
    return examined;
  findings.push_back(
      {Verdict::kWorks, "linking",
       "dynamically linked: " + last.elf->interpreter + " loads the preload library"});
  add_symbols(last, &findings);
  return examined;
}

// What `run` would choose here.
std::vector<Finding> examine_machine() {
  std::vector<Finding> findings;
  const std::vector<SystemFact> facts = system_facts();
  const bool has_messages = std::any_of(facts.begin(), facts.end(), [](const SystemFact& fact) {
    return fact.name == "message faults" && fact.is_available;
  });
  const bool has_in_thread = std::any_of(facts.begin(), facts.end(), [](const SystemFact& fact) {
    return fact.name == "in-thread faults" && fact.is_available;
  });
  std::string why_not;
  const bool has_window = has_in_thread && offers_run_window(&why_not);
  if (has_window)
    findings.push_back({Verdict::kWorks, "delivery",
                        "in-thread: the faulting thread fills, which is the fastest; system calls "
                        "on mapped memory work",
                        ""});
  else if (has_messages)
    findings.push_back({Verdict::kWorks, "delivery",
                        "messages: system calls on mapped memory work" +
                            (why_not.empty() ? "" : "; not in-thread, which is faster: " + why_not),
                        ""});
  for (const SystemFact& fact : facts) {
    if (fact.name != "message faults" && (fact.name != "delivery" || has_messages || has_window))
      continue;
    findings.push_back({fact.is_available ? Verdict::kWorks : Verdict::kInPart, fact.name,
                        fact.detail, fact.remedy});
  }
  const auto [budget, why] = default_budget();
  findings.push_back({Verdict::kWorks, "budget", format_bytes(budget) + " by default: " + why});
  return findings;
}

void print(const std::string& title, const std::vector<Finding>& findings) {
  std::printf("%s\n", one_line(title).c_str());
  for (const Finding& finding : findings)
    std::printf(
        "  %-13s  %-14s  %s\n", text_of(finding.verdict), finding.about.c_str(),
        one_line(finding.text + (finding.remedy.empty() ? "" : "; " + finding.remedy)).c_str());
}

Json to_json(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings)
    list.push_back({{"verdict", text_of(finding.verdict)},
                    {"about", finding.about},
                    {"text", finding.text},
                    {"remedy", finding.remedy}});
  return list;
}

struct Words {
  std::vector<std::string> programs;
  bool is_json = false;
};

int run_check(const Words& words) {
  Json all = {{"programs", Json::array()}};
  bool works = true;
  for (const std::string& name : words.programs) {
    const Examined examined = examine(name);
    works &= examined.verdict() != Verdict::kNot;
    if (words.is_json)
      all["programs"].push_back({{"program", name},
                                 {"path", examined.path},
                                 {"verdict", text_of(examined.verdict())},
                                 {"findings", to_json(examined.findings)}});
    else
      print(examined.path + ": " + text_of(examined.verdict()), examined.findings);
  }
  const std::vector<Finding> machine = examine_machine();
  all["machine"] = to_json(machine);
  if (words.is_json)
    show_json(all, 2);
  else
    print("this machine", machine);
  return works ? 0 : kFailed;
}

}  // namespace

void add_check(CommandSyntax& outcore) {
  auto words = std::make_shared<Words>();
  outcore
      .add("check", "Say what would keep `outcore run` from working with a program, and what to do")
      .word("program", words->programs, "names, as in PATH, or paths")
      .type("PROGRAM")
      .flag("--json", words->is_json, "one JSON object")
      .footer(
          "Exit status: 0 works, perhaps in part; 1 cannot work; 2 usage.\n"
          "Examples:\n  outcore check kraken2\n"
          "  outcore check ./prog --json | jq .programs[].verdict")
      .runs([words] { return run_check(*words); });
}

}  // namespace outcore::cli
