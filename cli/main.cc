// outcore: the command.
#include <cerrno>
#include <cstdio>

#include "cli/command.h"
#include "outcore/runtime.h"

namespace outcore::cli {
namespace {

// The verb that the user was in when parsing failed, for the remedy: "outcore bench sort".
std::string verb_of(const CLI::App& app) {
  std::string verb = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    verb += " " + at->get_name();
  }
  return verb;
}

const CLI::App& deepest(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return *at;
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  std::string text = one_line(error.what());
  const CLI::App& last = deepest(app);
  std::string words;
  for (const CLI::App* part : last.get_subcommands([](const CLI::App*) { return true; }))
    words += (words.empty() ? "" : ", ") + part->get_name();
  // A word that is no command: say which there are.
  if (!words.empty()) {
    const auto rest = last.remaining();
    const bool is_word = !rest.empty() && !rest.front().starts_with("-");
    text =
        (is_word ? "'" + rest.front() + "' is no command: " : text + ": ") + "use one of " + words;
  }
  std::fprintf(stderr, "outcore: %s; see %s --help\n", text.c_str(), verb_of(app).c_str());
  return kUsage;
}

}  // namespace

CLI::Option* add_bytes(CLI::App& app, const std::string& name, uint64_t& bytes,
                       const std::string& help) {
  const auto parse = [&bytes, name](const std::string& text) {
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    std::string unit;
    for (; *end != 0; ++end)
      unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*end)));
    if (unit.size() > 1 && unit.back() == 'b') unit.pop_back();
    if (unit.size() > 1 && unit.back() == 'i') unit.pop_back();
    static const std::string units = "kmgtp";
    double factor = 1;
    const size_t power = unit.size() == 1 ? units.find(unit[0]) : std::string::npos;
    if (power != std::string::npos)
      for (size_t i = 0; i <= power; ++i) factor *= 1024;
    const bool is_digit = !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0;
    const bool is_unit = unit.empty() || unit == "b" || power != std::string::npos;
    if (!is_digit || !is_unit || !(number * factor < 9.2e18))
      throw CLI::ValidationError(
          name, "'" + text + "' is no size: write a number with k, M, G or T, as in 64k or 1.5G");
    bytes = static_cast<uint64_t>(number * factor);
  };
  return app.add_option_function<std::string>(name, parse, help)->type_name("SIZE");
}

int report(const Error& error) {
  std::fprintf(stderr, "outcore: %s\n", one_line(error.message).c_str());
  return error.code == EINVAL ? kUsage : kFailed;
}

}  // namespace outcore::cli

int main(int argc, char** argv) {
  using namespace outcore::cli;
  CLI::App app{"Work on data larger than memory as if it were in memory.", "outcore"};
  app.set_version_flag("--version", std::string("outcore ") + outcore::version());
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  outcore info                          what this machine offers, and what is missing\n"
      "  outcore bench random-io --size 2G --budget 512M --memory mmap,mmap-random,outcore\n"
      "  outcore bench sort --size 1G --budget 256M --json > sort.json\n"
      "  outcore demo                          sort and search data several times their memory\n"
      "Exit status: 0 success, 1 failure, 2 usage.");
  int status = 0;
  add_info(app, status);
  add_bench(app, status);
  add_demo(app, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return usage_error(app, error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "outcore: %s\n", error.what());
    return kFailed;
  }
  return status;
}
