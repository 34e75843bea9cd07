// outcore report: makes a page of the record that a run with --report, or OUTCORE_REPORT, has left.
#include "sight/commands/report.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/text.h"
#include "sight/commands/kept_records.h"
#include "sight/commands/page_fit.h"
#include "sight/commands/page_text.h"
#include "sight/commands/plain_page.h"
#include "sight/commands/record_lines.h"
#include "sight/commands/whole_file.h"

namespace outcore::cli {
namespace {

constexpr uint64_t kVersion = 1;
constexpr size_t kTableBytesMax = size_t{4} << 20;

// What is wrong with a line, and what to do if no other is a record.
struct Complaint {
  int code = EBADMSG;
  std::string what;  // empty: it is a record
  std::string remedy = "run the program again";
};

Complaint complaint_about(const Result<Json>& read, bool is_cut, const std::string& line) {
  if (!read && line.starts_with('{'))
    return {.what = is_cut ? "is cut short, as by the end of a full disk or of the program"
                           : "is damaged: " + read.message()};
  const Json record = read ? read.value() : Json();
  if (!record.is_object() || record.value("format", "") != "outcore-run")
    return {EINVAL, "is not a record of a run", "name the file of --report or OUTCORE_REPORT"};
  const uint64_t version = record.value("version", uint64_t{0});
  const bool has_time = record["program"].value("seconds", -1.0) >= 0;
  if (version == 0 || (version == kVersion && !has_time))
    return {.what = std::string("is damaged: it has no ") +
                    (version == 0 ? "version" : "elapsed time")};
  if (version == kVersion) return {};
  return {.what = "is of version " + std::to_string(version) + ", and this command reads version 1",
          .remedy = "use a newer one"};
}

// What `outcore run --json` writes: one object of many lines.
bool is_table(const std::string& path) {
  std::string text(kTableBytesMax, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  const Json table = Json::parse_or_null(text);
  return table.is_object() && table["processes"].is_array() && table["not_taken"].is_array();
}

// A loop that the compiler has unrolled has many instructions, and is one place.
bool is_one_place(const Json& a, const Json& b) {
  if (a["function"].is_null() || a["function"] != b["function"]) return false;
  for (const char* name : {"module", "file", "line", "file_uri"})
    if (a[name] != b[name]) return false;
  return true;
}

void add_site(const Json& more, Json* site) {
  const double before = site->value("faults", 0.0), added = more.value("faults", 0.0);
  Json shares;
  for (const char* name : {"sequential", "strided", "random"}) {
    const double sum =
        before * (*site)["pattern"].value(name, 0.0) + added * more["pattern"].value(name, 0.0);
    shares[name] = before + added > 0 ? sum / (before + added) : 0.0;
  }
  (*site)["pattern"] = std::move(shares);
  for (const char* name : {"faults", "share", "stalled_s"})
    (*site)[name] = site->value(name, 0.0) + more.value(name, 0.0);
}

// A record that somebody has changed may have others.
Json files_with_paths(const Json& list) {
  Json files = Json::array();
  for (const Json& file : list)
    if (!file.value("path", "").empty()) files.push_back(file);
  return files;
}

void name_sites(Json* record, Symbols* symbols) {
  std::vector<Json> named;  // the one with most faults comes first, and stands for its place
  for (Json site : (*record)["sites"]) {
    if (!site.is_object()) continue;
    const CodePlace place =
        symbols->find(site.value("module", ""), site.value("offset", uint64_t{0}));
    site["function"] = place.function.empty() ? Json() : Json(place.function);
    site["file"] = place.file.empty() ? Json() : Json(place.file);
    site["line"] = place.file.empty() ? Json() : Json(place.line);
    const auto same = std::find_if(named.begin(), named.end(),
                                   [&](const Json& other) { return is_one_place(other, site); });
    if (same == named.end())
      named.push_back(std::move(site));
    else
      add_site(site, &*same);
  }
  std::stable_sort(named.begin(), named.end(), [](const Json& a, const Json& b) {
    return a.value("faults", 0.0) > b.value("faults", 0.0);
  });
  Json sites = Json::array();
  for (Json& site : named) sites.push_back(std::move(site));
  (*record)["sites"] = std::move(sites);
}

// Why the record of a run that waited has no place in the code; empty: its verdict says why.
std::string why_no_places(const Json& record) {
  const Counters counters = counters_of(record["counters"]);
  if (!record["sites"].empty() || !record.value("ended", "").empty()) return "";
  if (counters.faults == 0)
    return counters.call_waits == 0 ? ""
                                    : "Which lines of code waited is not known: calls of the "
                                      "library brought the pages in, and touches alone are seen.";
  for (const Json& file : record["files"])
    if (file.value("delivery", "") == "messages" && counters_of(file["counters"]).faults != 0)
      return "Which lines of code waited is not known: faults came by messages, which do not show "
             "it. Set OUTCORE_DELIVERY=in-thread.";
  return "";
}

std::string place_sentence(const Json& record) {
  if (record["sites"].empty()) return why_no_places(record);
  const Json& site = record["sites"][size_t{0}];
  const std::string function = site.value("function", ""), file = site.value("file", "");
  std::string where = function.empty() ? site.value("module", "") : function;
  if (where.empty())
    where = "code without a file";
  else if (function.empty())
    where += format("+0x%llx (no symbols: compile with -g)",
                    static_cast<unsigned long long>(site.value("offset", uint64_t{0})));
  else if (file.empty())
    where += " (no lines: compile with -g)";
  if (!file.empty())
    where +=
        " (" + file.substr(file.rfind('/') + 1) + ":" + std::to_string(site.value("line", 0)) + ")";
  const Json& pattern = site["pattern"];
  const char* order = "at random";
  if (pattern.value("sequential", 0.0) > 0.5) order = "in order";
  if (pattern.value("strided", 0.0) > 0.5) order = "in even steps";
  return format("%.0f %% of the absent touches are at ", 100 * site.value("share", 0.0)) + where +
         ", " + order + ".";
}

// The smallest budget that saves most of what any would.
void find_better_budget(const Json& curve, RunFacts* facts) {
  constexpr double kWorthIt = 0.05, kMostOfIt = 0.8;
  const Json::Array& points = curve["points"].items();
  if (points.size() < 2) return;
  const double now = points.front().value("misses", 0.0);
  const double least = points.back().value("misses", now);
  if (now <= 0 || (now - least) / now < kWorthIt) return;
  for (const Json& point : points) {
    const double saved = now - point.value("misses", now);
    if (saved < kMostOfIt * (now - least)) continue;
    facts->better_budget_bytes = point.value("budget_bytes", uint64_t{0});
    facts->better_share_saved = saved / now;
    return;
  }
}

RunFacts facts_of(const Json& record) {
  RunFacts facts;
  facts.seconds = record["program"].value("seconds", 0.0);
  facts.ended = record.value("ended", "");
  facts.command = own_command_of(record);
  facts.memory_bytes = record["environment"].value("memory_bytes", UINT64_MAX);
  facts.is_budget_adapting = record["settings"].value("budget", "") == "auto";
  facts.is_messages_asked_for = record["settings"].value("delivery", "") == "messages";
  facts.counters = counters_of(record["counters"]);
  facts.latency = latency_of(record["latency"]);
  facts.budget_bytes = record["gauges"].value("budget_bytes", uint64_t{0});
  facts.used_bytes_max = record["gauges"].value("used_bytes_max", uint64_t{0});
  if (const Json& buffer = record["buffer"]; buffer.is_object()) {
    facts.buffer = buffer.value("name", "");
    facts.budget_bytes = buffer.value("limit_bytes", facts.budget_bytes);
    facts.used_bytes_max = buffer.value("used_bytes_max", facts.used_bytes_max);
  }
  facts.is_degraded = record["gauges"].value("degraded", uint64_t{0}) != 0;
  for (const Json& json : record["files"]) {
    const Counters counters = counters_of(json["counters"]);
    facts.files.push_back({json.value("uri", ""), json.value("fetches", ""), brought_in(counters),
                           counters.read_bytes, json.value("size_bytes", uint64_t{0}),
                           json.value("resident_bytes", uint64_t{0})});
    facts.touched_bytes += json.value("touched_bytes", uint64_t{0});
    facts.page_bytes = json.value("page_bytes", facts.page_bytes);
    facts.is_messages = facts.is_messages || json.value("delivery", "") == "messages";
  }
  std::stable_sort(facts.files.begin(), facts.files.end(),
                   [](const auto& a, const auto& b) { return a.brought_in > b.brought_in; });
  facts.left_files = left_files_of(record["left_to_kernel"]);
  facts.place = place_sentence(record);
  facts.policy = policy_text(record);
  find_better_budget(record["miss_curve"], &facts);
  return facts;
}

// In place of a name that stands in the template once.
void put(const std::string& name, const std::string& text, std::string* page) {
  const size_t at = page->find(name);
  if (at != std::string::npos) page->replace(at, name.size(), text);
}

// Nothing within ends the script that it stands in, nor hides its end.
std::string script_text(const std::string& json) {
  std::string text;
  for (const char c : json)
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  return text;
}

struct Words {
  std::string records, output;
  bool is_json = false, is_text = false;
};

void print_text(const std::vector<Json>& records) {
  for (const Json& record : records) {
    std::printf("%s (%s)\n", one_line(record["program"].value("command", "")).c_str(),
                std::to_string(record["program"].value("pid", uint64_t{0})).c_str());
    std::printf("  %s\n", record["verdict"].value("headline", "").c_str());
    for (const Json& sentence : record["verdict"]["sentences"])
      std::printf("  %s\n", sentence.as<std::string>().value_or("").c_str());
    for (const Json& next : record["verdict"]["next"])
      std::printf("  next: %s\n", next.as<std::string>().value_or("").c_str());
  }
}

int run(const Words& words) {
  if (words.is_json && words.is_text)
    return report(Error{EINVAL, "--text prints the verdict and --json the records: give one"});
  std::string output = words.output;
  if (output.empty()) {
    output = words.records;
    const size_t end = output.rfind(".json");
    if (end != std::string::npos && end + 5 == output.size()) output.resize(end);
    output += ".html";
  }
  std::error_code none;
  if (!words.is_json && !words.is_text && std::filesystem::equivalent(words.records, output, none))
    return report(Error{EINVAL, "the page would take the place of its record, " + words.records +
                                    ": name another file by -o"});
  if (!words.is_json && !words.is_text) {
    const Status done = write_report(words.records, output);
    return done.ok() ? 0 : report(Error{done.code(), done.message()});
  }
  Result<std::vector<Json>> records = read_records(words.records);
  if (!records) return report(records.error());
  Symbols symbols;
  for (Json& record : records.value()) complete_record(&record, &symbols);
  if (words.is_json)
    for (const Json& record : records.value()) show_json(record);
  else
    print_text(records.value());
  return 0;
}

}  // namespace

Result<std::vector<Json>> read_records(const std::string& path) {
  struct stat about {};
  const std::string attempt = "read the record " + path;
  const auto unreadable = [&] {
    return failure(errno, attempt, "name the file of --report or OUTCORE_REPORT");
  };
  if (::stat(path.c_str(), &about) != 0) return unreadable();
  // Before it is opened: of a pipe that nobody writes, that would wait for ever.
  if (!S_ISREG(about.st_mode))
    return Error{EBADF, attempt +
                            ": it is not a regular file: name the file of --report or "
                            "OUTCORE_REPORT"};
  RecordLines lines(path);
  if (!lines.is_open()) return unreadable();
  KeptRecords kept;
  std::string line, where;
  Complaint complaint;
  for (size_t number = 1; lines.next(&line); ++number) {
    if (line.empty()) continue;
    bool is_cut = false;
    const Result<Json> record = Json::parse(line, &is_cut);
    const Complaint wrong = complaint_about(record, is_cut, line);
    if (wrong.what.empty()) {
      kept.add(record.value(), line.size());
    } else if (complaint.what.empty()) {
      complaint = wrong;
      where = path + ":" + std::to_string(number) + " ";
    }
  }
  std::vector<Json> records = kept.take();
  if (kept.left_out() != 0)
    std::fprintf(stderr,
                 "outcore: %s has more than 256 MiB: %zu records of those that waited least "
                 "are left out\n",
                 path.c_str(), kept.left_out());
  if (records.empty() && !complaint.what.empty() && is_table(path))
    return Error{EINVAL, attempt + ": that is the table of --json: name the file of --report"};
  if (records.empty())
    return Error{complaint.code,
                 attempt + ": " +
                     (complaint.what.empty()
                          ? "it is empty: the run has not ended, or was killed: wait, or run the "
                            "program again"
                          : where + complaint.what + ": " + complaint.remedy)};
  if (!complaint.what.empty())
    std::fprintf(stderr, "outcore: %s%s: it is left out\n", where.c_str(), complaint.what.c_str());
  return records;
}

void complete_record(Json* record, Symbols* symbols) {
  if (record->contains("left_to_kernel"))
    (*record)["left_to_kernel"] = files_with_paths((*record)["left_to_kernel"]);
  name_sites(record, symbols);
  if (std::string why = why_no_places(*record); !why.empty()) (*record)["why_no_sites"] = why;
  (*record)["verdict"] = json_of(verdict_of(facts_of(*record)));
}

std::string page_of(std::vector<Json> records) {
  std::string page{page_template()};
  for (Json& record : records) shorten_texts(&record);
  const std::string plain = plain_page(records);
  const std::string name =
      records.empty() ? "" : one_line(records.front()["program"].value("command", ""));
  const std::string title = html_text(beginning_of(name, 80)) + " – Outcore";
  const size_t around = page.size() + drawing_library().size() + plain.size() + title.size();
  constexpr size_t kSpare = 1000;  // what holds the records together
  const size_t room = kPageBytesMax - kSpare;
  Json all;
  all["runs_left_out"] = fit_records(room - std::min(room, around), &records);
  all["runs"] = Json::array(std::move(records));
  // In this order: what a run is called may be the name of a place.
  put("/*@D3@*/", std::string(drawing_library()), &page);
  put("/*@RUNS@*/", script_text(all.dump({.is_as_added = true})), &page);
  put("<!--@TEXT@-->", plain, &page);
  put("@TITLE@", title, &page);
  return page;
}

Status write_report(const std::string& records_path, const std::string& page_path,
                    bool is_temporary) {
  Result<std::vector<Json>> records = read_records(records_path);
  if (!records) return records.error();
  Symbols symbols;
  bool has_sites = false;
  for (Json& record : records.value()) {
    has_sites = has_sites || !record["sites"].empty();
    // `outcore run` removes the records of its page when that is there.
    if (record["settings"].value("report", "") == records_path && is_temporary)
      record["settings"]["report"] = page_path;
    complete_record(&record, &symbols);
  }
  if (Status s = write_whole(page_path, page_of(records.value()), "the report"); !s) return s;
  if (has_sites && !symbols.complaint().empty())
    std::fprintf(stderr, "outcore: %s\n", symbols.complaint().c_str());
  // Of several processes the one that waited longest.
  const auto longest = std::max_element(
      records.value().begin(), records.value().end(),
      [](const Json& one, const Json& other) { return waited_ns_of(one) < waited_ns_of(other); });
  std::fprintf(stderr, "outcore: %s\n", (*longest)["verdict"].value("headline", "").c_str());
  for (const Json& next : (*longest)["verdict"]["next"])
    std::fprintf(stderr, "  next: %s\n", next.as<std::string>().value_or("").c_str());
  std::fprintf(stderr, "  the report: %s\n", page_path.c_str());
  return {};
}

void add_report(CommandSyntax& outcore) {
  const auto words = std::make_shared<Words>();
  outcore.add("report", "Make a page of the record that a run has left")
      .word("record", words->records, "the file of --report FILE.json, or OUTCORE_REPORT")
      .type("RECORD.json")
      .required()
      .option("-o,--output", words->output, "where the page goes (beside the record, .html)")
      .type("FILE.html")
      .flag("--text", words->is_text, "print the verdict alone")
      .flag("--json", words->is_json, "print the records, with lines of code and the verdict")
      .footer(
          "`outcore run --report FILE.html -- PROGRAM` does both.\n"
          "Exit status: 0 done; 1 it cannot be read or written; 2 it is not a record.\n"
          "Example:\n  outcore report run.json -o run.html")
      .runs([words] { return run(*words); });
}

}  // namespace outcore::cli
