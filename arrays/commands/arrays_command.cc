// outcore arrays ls, info, export, import, drain, show, verify: containers of named arrays from
// outside.
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "arrays/commands/array_box.h"
#include "arrays/commands/array_picture.h"
#include "arrays/commands/arrays_copy.h"
#include "arrays/commands/arrays_drain.h"
#include "arrays/commands/arrays_show.h"
#include "arrays/commands/arrays_verify.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/text.h"
#include "outcore/arrays.h"

namespace outcore::cli {
namespace {

struct Words {
  std::string uri, name;
  bool is_json = false;
};

const char* order_of(const ArrayInfo& info) {
  return info.order == Order::kColumn ? "column" : "row";
}

std::string tiles_of(const ArrayInfo& info) {
  return (info.tiles.empty() ? "" : ", tiles of " + text_of(info.tiles)) +
         (info.compress.empty() ? "" : ", " + info.compress);
}

Json to_json(const ArrayInfo& info) {
  return {{"name", info.name},
          {"type", info.type.name},
          {"dims", info.dims},
          {"order", order_of(info)},
          {"tiles", info.tiles},
          {"compress", info.compress},
          {"size_bytes", info.size_bytes},
          {"element_bytes", info.type.size_bytes}};
}

std::string dims_of(const ArrayInfo& info) {
  if (info.type.name == "text" || info.type.name == "object") return "one value";
  return text_of(info.dims);
}

int list(const Words& words) {
  const auto arrays = Arrays::open(words.uri);
  if (!arrays) return report(arrays.error());
  const auto all = arrays->list();
  if (words.is_json) {
    Json told = Json::array();
    for (const ArrayInfo& info : all) told.push_back(to_json(info));
    show_json({{"arrays", told}});
    return 0;
  }
  std::printf("%-8s %-20s %12s  %s\n", "type", "dims", "size", "name");
  for (const ArrayInfo& info : all) {
    const bool is_column = info.order == Order::kColumn && info.dims.size() > 1;
    std::printf("%-8s %-20s %12s  %s%s%s\n", info.type.name.c_str(), dims_of(info).c_str(),
                format_bytes(info.size_bytes).c_str(), one_line(info.name).c_str(),
                is_column ? ", column order" : "", tiles_of(info).c_str());
  }
  return 0;
}

void line(const char* name, const std::string& value) {
  std::printf("%-12s %s\n", name, one_line(value).c_str());
}

void print_attributes(const Texts& attributes) {
  if (attributes.empty()) return;
  std::printf("attributes\n");
  for (const auto& [key, text] : attributes)
    std::printf("  %s: %s\n", one_line(key).c_str(), one_line(text).c_str());
}

int tell_one(const Arrays& arrays, const Words& words) {
  const auto info = arrays.info(words.name);
  if (!info) return report(info.error());
  const auto attributes = load_attributes(arrays, words.name);
  if (!attributes) return report(attributes.error());
  if (words.is_json) {
    Json told = to_json(info.value());
    told["attributes"] = attributes.value();
    show_json(told);
    return 0;
  }
  line("name", info->name);
  line("type", info->type.name);
  line("dims", dims_of(info.value()));
  line("order", order_of(info.value()));
  line("tiles", info->tiles.empty() ? "none: one piece" : text_of(info->tiles));
  line("compress", info->compress.empty() ? "none" : info->compress);
  line("size", (info->compress.empty() ? "" : "at most ") + format_bytes(info->size_bytes));
  print_attributes(attributes.value());
  return 0;
}

// Its length, and what it takes on the disk: what is compressed, and what nobody stored, has holes.
struct FileSize {
  uint64_t file_bytes, disk_bytes;
};
std::optional<FileSize> file_size(const Arrays& arrays) {
  struct stat facts {};
  if (::stat(arrays.uri().c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  return FileSize{static_cast<uint64_t>(facts.st_size),
                  static_cast<uint64_t>(facts.st_blocks) * 512};
}

int tell(const Words& words) {
  const auto arrays = Arrays::open(words.uri);
  if (!arrays) return report(arrays.error());
  if (!words.name.empty()) return tell_one(arrays.value(), words);
  const auto attributes = load_attributes(arrays.value(), "");
  if (!attributes) return report(attributes.error());
  const auto all = arrays->list();
  uint64_t size_bytes = 0;
  for (const ArrayInfo& info : all) size_bytes += info.size_bytes;
  const auto file = file_size(arrays.value());
  if (words.is_json) {
    Json told = {{"container", arrays->uri()},
                 {"bytes_travel", arrays->describe()},
                 {"arrays", all.size()},
                 {"size_bytes", size_bytes},
                 {"attributes", attributes.value()}};
    if (file) told.update({{"file_bytes", file->file_bytes}, {"disk_bytes", file->disk_bytes}});
    show_json(told);
    return 0;
  }
  line("container", arrays->uri());
  line("bytes", arrays->describe());
  line("arrays", std::to_string(all.size()));
  line("size", format_bytes(size_bytes));
  if (file)
    line("file",
         format_bytes(file->file_bytes) + ", " + format_bytes(file->disk_bytes) + " on the disk");
  print_attributes(attributes.value());
  return 0;
}

int done(const Status& status) { return status ? 0 : report(status.error()); }

constexpr const char* kContainer = "the container: a file, or another store";
constexpr const char* kFile = ".npy, .npz, .h5 (.hdf5), .nc or .zarr (a folder), by its ending";

void add_looks(CLI::App& parent, int& status) {
  const auto words = std::make_shared<Words>();
  CLI::App* const ls = parent.add_subcommand("ls", "which arrays there are");
  CLI::App* const info = parent.add_subcommand("info", "the container, or one array, in full");
  for (CLI::App* command : {ls, info}) {
    command->add_option("URI", words->uri, kContainer)->required();
    command->add_flag("--json", words->is_json, "one JSON object in place of text");
  }
  info->add_option("NAME", words->name, "an array");
  ls->callback([words, &status] { status = list(*words); });
  info->callback([words, &status] { status = tell(*words); });
  ls->footer("Example:\n  outcore arrays ls run.oca");
  info->footer("Example:\n  outcore arrays info run.oca u");
}

void add_copies(CLI::App& parent, int& status) {
  const auto copy = std::make_shared<ArraysCopy>();
  CLI::App* const out = parent.add_subcommand("export", "copy arrays into a file that others read");
  out->add_option("URI", copy->uri, kContainer)->required();
  out->add_option("NAME", copy->names, "of arrays (all)");
  out->add_option("--to", copy->file, kFile)->required();
  out->add_option("--slice", copy->slice, "a part of one array, as in Python: 10:20,:,5");
  out->add_flag("--replace", copy->may_replace, "replace the file that is there");
  out->callback([copy, &status] { status = done(export_arrays(*copy)); });
  out->footer(
      "Attributes go along where the format has some: HDF5, NetCDF, Zarr.\n"
      "Examples:\n  outcore arrays export run.oca u --to u.npy\n"
      "  outcore arrays export run.oca --to run.h5\n"
      "  outcore arrays export run.oca u --slice 0:10,:,5 --to plane.nc");
  CLI::App* const in = parent.add_subcommand("import", "copy arrays of a file into a container");
  in->add_option("FILE", copy->file, kFile)->required();
  in->add_option("NAME", copy->names, "of arrays in it (all)");
  in->add_option("--to", copy->uri, "the container; made if there is none")->required();
  in->add_flag("--replace", copy->may_replace, "replace arrays that are there");
  in->add_option("--compress", copy->compress, "lz4, zstd or zstd:LEVEL, each tile (none)");
  in->add_option(
      "--tiles", copy->tiles,
      "64,64,64: of arrays with so many dimensions (one piece; compressed: about 1 MiB)");
  in->callback([copy, &status] { status = done(import_arrays(*copy)); });
  in->footer(
      "All of them are there afterwards, or none.\n"
      "Examples:\n  outcore arrays import u.npy --to run.oca\n"
      "  outcore arrays import climate.nc temperature --to run.oca\n"
      "  outcore arrays import u.npy --to run.oca --compress zstd --tiles 64,64,64");
}

void add_drain(CLI::App& parent, int& status) {
  const auto drain = std::make_shared<DrainCommand>();
  CLI::App* const command =
      parent.add_subcommand("drain", "copy finished arrays to another container, verified");
  command->add_option("URI", drain->from, kContainer)->required();
  command->add_option("NAME", drain->names, "of arrays (all)");
  command->add_option("--to", drain->to, "the other container; made if there is none")->required();
  command->add_option("--rate", drain->rate, "at most so many bytes a second: 200M (no limit)");
  command->add_flag("--remove", drain->may_remove,
                    "remove them here when all are there; who reads here finds them there");
  command->add_flag("--json", drain->is_json, "one JSON object in place of text");
  command->callback([drain, &status] { status = done(drain_arrays(*drain)); });
  command->footer(
      "Arrays that are there already are not copied again: after an interruption it goes on.\n"
      "Example:\n  outcore arrays drain /pmem/run.oca --to /archive/run.oca --rate 200M --remove");
}

void add_verify(CLI::App& parent, int& status) {
  const auto words = std::make_shared<ArraysVerify>();
  CLI::App* const command =
      parent.add_subcommand("verify", "read arrays, and compare them with their checksums");
  command->add_option("URI", words->uri, kContainer)->required();
  command->add_option("NAME", words->name, "an array (all)");
  command->add_flag("--json", words->is_json, "one JSON object in place of text");
  command->callback([words, &status] { status = verify_arrays(*words); });
  command->footer(
      "A line for each damage, with where it is.\n"
      "Exit status: 0 all of it is what was stored; 1 it is damaged, or cannot be opened; 2 "
      "usage.\n"
      "Examples:\n  outcore arrays verify run.oca\n  outcore arrays verify run.oca u");
}

void add_picture(CLI::App& parent, int& status) {
  const auto show = std::make_shared<ArraysShow>();
  CLI::App* const command = parent.add_subcommand("show", "a slice as a picture, or one value");
  command->add_option("URI", show->uri, kContainer)->required();
  command->add_option("NAME", show->name, "of the array")->required();
  command->add_option("--slice", show->slice,
                      "a plane or a row, as in Python: 5,:,10:20 (the plane in the middle)");
  command->add_option("--out", show->picture, "the picture, .png (NAME.png)");
  command->add_option("--colors", show->colors, "viridis, magma, coolwarm or gray (viridis)")
      ->check(CLI::IsMember(color_names()));
  command->add_option("--range", show->range, "LOW:HIGH, the ends of the colours (all numbers)");
  command->add_flag("--replace", show->may_replace, "replace the picture that is there");
  command->add_flag("--json", show->is_json, "one JSON object in place of text");
  command->callback([show, &status] { status = done(show_array(*show)); });
  command->footer(
      "A plane is a map, its first row on top; a row is a curve. NaNs are hatched. Of complex "
      "numbers\nit shows the magnitudes.\n"
      "Example:\n  outcore arrays show run.oca u --slice 5,:,: --out plane.png");
}

}  // namespace

void add_arrays(CLI::App& app, int& status) {
  CLI::App* const parent = app.add_subcommand(
      "arrays", "containers of named arrays: ls, info, export, import, drain, show, verify");
  parent->require_subcommand(1);
  parent->footer(
      "Examples:\n  outcore arrays ls run.oca\n  outcore arrays export run.oca u --to u.npy\n"
      "  outcore arrays show run.oca u --slice 5,:,:");
  add_looks(*parent, status);
  add_copies(*parent, status);
  add_drain(*parent, status);
  add_picture(*parent, status);
  add_verify(*parent, status);
}

}  // namespace outcore::cli
