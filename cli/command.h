// Command: how the commands of `outcore` are put together: one file each, one function that adds
// it.
#pragma once

#include <cstdint>
#include <string>

#include "outcore/result.h"

namespace outcore::cli {

class CommandSyntax;

inline constexpr int kFailed = 1;  // exit statuses
inline constexpr int kUsage = 2;

// Adds the command, or those of one kind.
void add_info(CommandSyntax& outcore);
void add_bench(CommandSyntax& outcore);
void add_demo(CommandSyntax& outcore);
// `program`: the words of the program that is to be started, ended by nullptr. They are set apart
// before the rest is parsed, which would change some ("[a]", "{}").
CommandSyntax& add_run(CommandSyntax& outcore, char** const& program);
void add_check(CommandSyntax& outcore);
void add_heap(CommandSyntax& outcore);
void add_store(CommandSyntax& outcore);
void add_checkpoint(CommandSyntax& outcore);
void add_arrays(CommandSyntax& outcore);
void add_residency(CommandSyntax& outcore);  // and warm and evict
void add_buffers(CommandSyntax& outcore);
void add_serve(CommandSyntax& outcore);
void add_report(CommandSyntax& outcore);
void add_explain(CommandSyntax& outcore);
void add_export(CommandSyntax& outcore);
void add_top(CommandSyntax& outcore);
void add_stat(CommandSyntax& outcore);
// Parts of `bench`.
void add_bench_tools(CommandSyntax& bench);  // compare, ingest, generate
void add_bench_report(CommandSyntax& bench);
void add_bench_table(CommandSyntax& bench);
void add_bench_arrays(CommandSyntax& bench);
void add_bench_checkpoint(CommandSyntax& bench);

// Bytes, as in "64k", "1.5G" or "4096". EINVAL: the text is not a size.
Result<uint64_t> parse_size(const std::string& text);

// Prints "outcore: message" on standard error, one line, and returns kFailed, or kUsage for EINVAL.
int report(const Error& error);
// The same of an error about the store, heap or pool that the URI names: kUsage only if the URI is
// none, as its scheme or a parameter is unknown, or a value is not possible. What is wrong with the
// thing itself is kFailed.
int report_about(const std::string& uri, const Error& error);

}  // namespace outcore::cli
