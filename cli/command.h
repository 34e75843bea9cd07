// Command: how the commands of `outcore` are put together: one file each, one function that adds
// it.
#pragma once

#include <cstdint>
#include <string>

#include "outcore/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace outcore::cli {

inline constexpr int kFailed = 1;  // exit statuses
inline constexpr int kUsage = 2;

// Adds the command; its callback sets `status` to what the program exits with.
void add_info(CLI::App& app, int& status);
void add_bench(CLI::App& app, int& status);
void add_demo(CLI::App& app, int& status);
// `program`: the words of the program that is to be started, ended by nullptr. They are set apart
// before the rest is parsed, for CLI11 would change some ("[a]", "{}").
void add_run(CLI::App& app, int& status, char** const& program);
void add_check(CLI::App& app, int& status);
void add_store(CLI::App& app, int& status);
void add_checkpoint(CLI::App& app, int& status);
void add_arrays(CLI::App& app, int& status);
void add_residency(CLI::App& app, int& status);  // and warm and evict
// Parts of `bench`.
void add_bench_tools(CLI::App& bench, int& status);  // compare, ingest, generate
void add_bench_report(CLI::App& bench, int& status);
void add_bench_table(CLI::App& bench, int& status);
void add_bench_arrays(CLI::App& bench, int& status);
void add_bench_checkpoint(CLI::App& bench, int& status);

// Bytes, as in "64k", "1.5G" or "4096". EINVAL: the text is none.
Result<uint64_t> parse_size(const std::string& text);
// An option that takes "64k", "1.5G" or "4096".
CLI::Option* add_bytes(CLI::App& app, const std::string& name, uint64_t& bytes,
                       const std::string& help);

// An option that takes a whole number of 0 or more.
void add_number(CLI::App& app, const std::string& name, uint64_t& number, const std::string& help);

// Whatever comes from outside, without what would end its line.
std::string one_line(std::string text);

// Prints "outcore: message" on standard error, one line, and returns kFailed, or kUsage for EINVAL.
int report(const Error& error);

}  // namespace outcore::cli
