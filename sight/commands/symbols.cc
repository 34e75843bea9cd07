#include "sight/commands/symbols.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <map>
#include <optional>

#include "cli/elf_reader.h"

namespace outcore::cli {
namespace {

// "ns::f(int, std::vector<T>) const" without what is in the last parentheses: which overload it is
// matters less than that the line can be read.
std::string without_arguments(std::string name) {
  const size_t end = name.rfind(')');
  if (end == std::string::npos) return name;
  int depth = 0;
  for (size_t i = end + 1; i-- > 0;) {
    depth += name[i] == ')' ? 1 : name[i] == '(' ? -1 : 0;
    if (depth != 0) continue;
    // Not of "operator()" or "(anonymous namespace)::f".
    return i == 0 || name.compare(0, i, "operator") == 0 ? name : name.substr(0, i);
  }
  return name;
}

std::string demangled(const char* name) {
  if (name[0] != '_' || name[1] != 'Z') return name;  // in C: "f" would become float
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && text != nullptr ? without_arguments(text.get()) : name;
}

}  // namespace

struct Symbols::Library {
  struct Module {
    Dwfl* session = nullptr;
    Dwfl_Module* module = nullptr;
    std::vector<Elf64_Phdr> segments;
    GElf_Addr bias = 0;
  };

  void* handle = nullptr;
  std::string complaint;
  std::map<std::string, Module> modules;
  // Of libdw; all are there if there is no complaint.
  decltype(&dwfl_begin) begin = nullptr;
  decltype(&dwfl_end) end = nullptr;
  decltype(&dwfl_report_offline) report_offline = nullptr;
  decltype(&dwfl_report_end) report_end = nullptr;
  decltype(&dwfl_module_getelf) getelf = nullptr;
  decltype(&dwfl_module_addrname) addrname = nullptr;
  decltype(&dwfl_module_getsrc) getsrc = nullptr;
  decltype(&dwfl_lineinfo) lineinfo = nullptr;
  Dwfl_Callbacks callbacks{};

  template <typename F>
  void look_up(const char* name, F* function) {
    *function = reinterpret_cast<F>(::dlsym(handle, name));
    if (*function == nullptr && complaint.empty())
      complaint = std::string("libdw.so.1 has no ") + name + ": install a newer elfutils";
  }

  Library() {
    // It may ask servers for debugging information, which takes as long as they like.
    ::unsetenv("DEBUGINFOD_URLS");
    handle = ::dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      complaint =
          "libdw.so.1 cannot be loaded, so that places in the code stay numbers: install "
          "libdw1 (elfutils)";
      return;
    }
    look_up("dwfl_begin", &begin);
    look_up("dwfl_end", &end);
    look_up("dwfl_report_offline", &report_offline);
    look_up("dwfl_report_end", &report_end);
    look_up("dwfl_module_getelf", &getelf);
    look_up("dwfl_module_addrname", &addrname);
    look_up("dwfl_module_getsrc", &getsrc);
    look_up("dwfl_lineinfo", &lineinfo);
    look_up("dwfl_standard_find_debuginfo", &callbacks.find_debuginfo);
    look_up("dwfl_offline_section_address", &callbacks.section_address);
    look_up("dwfl_build_id_find_elf", &callbacks.find_elf);
  }

  ~Library() {
    for (auto& [path, module] : modules)
      if (module.session != nullptr) end(module.session);
  }

  // A session for each file: addresses of several would be mixed.
  Module& open(const std::string& path) {
    const auto [found, is_new] = modules.try_emplace(path);
    Module& opened = found->second;
    struct stat about {};
    if (!is_new || ::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return opened;
    opened.segments = ElfReader(path).segments();
    opened.session = begin(&callbacks);
    if (opened.session == nullptr) return opened;
    opened.module = report_offline(opened.session, "", path.c_str(), -1);
    report_end(opened.session, nullptr, nullptr);
    if (opened.module != nullptr && getelf(opened.module, &opened.bias) == nullptr)
      opened.module = nullptr;
    return opened;
  }
};

Symbols::Symbols() : library_(std::make_unique<Library>()) {}
Symbols::~Symbols() = default;

const std::string& Symbols::complaint() const { return library_->complaint; }

CodePlace Symbols::find(const std::string& module, uint64_t offset) {
  CodePlace place;
  if (!library_->complaint.empty() || module.empty()) return place;
  const Library::Module& opened = library_->open(module);
  if (opened.module == nullptr) return place;
  for (const Elf64_Phdr& segment : opened.segments) {
    if (segment.p_type != PT_LOAD || offset < segment.p_offset ||
        offset - segment.p_offset >= segment.p_filesz)
      continue;
    const GElf_Addr at = segment.p_vaddr + (offset - segment.p_offset) + opened.bias;
    if (const char* const name = library_->addrname(opened.module, at); name != nullptr)
      place.function = demangled(name);
    Dwfl_Line* const line = library_->getsrc(opened.module, at);
    const char* const file =
        line == nullptr ? nullptr
                        : library_->lineinfo(line, nullptr, &place.line, nullptr, nullptr, nullptr);
    if (file != nullptr) place.file = file;
    break;
  }
  return place;
}

}  // namespace outcore::cli
