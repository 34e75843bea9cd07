// outcore arrays ls, info, export, import, drain, show, verify: work on containers of named arrays
// without mapping them.
#include <sys/stat.h>

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
#include "arrays/commands/open_file.h"
#include "cli/command.h"
#include "cli/command_syntax.h"
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
  const auto arrays = open_container(words.uri);
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

// The length of a file, and the space that it takes on the disk: compressed arrays, and parts that
// were never stored, have holes.
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
  const auto arrays = open_container(words.uri);
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

constexpr const char* kJson = "one JSON object in place of text";

void add_looks(CommandSyntax& parent) {
  const auto words = std::make_shared<Words>();
  parent.add("ls", "which arrays there are")
      .word("URI", words->uri, kContainer)
      .flag("--json", words->is_json, kJson)
      .footer("Example:\n  outcore arrays ls run.oca")
      .runs([words] { return list(*words); });
  parent.add("info", "the container, or one array, in full")
      .word("URI", words->uri, kContainer)
      .flag("--json", words->is_json, kJson)
      .optional_word("NAME", words->name, "an array")
      .footer("Example:\n  outcore arrays info run.oca u")
      .runs([words] { return tell(*words); });
}

void add_copies(CommandSyntax& parent) {
  const auto copy = std::make_shared<ArraysCopy>();
  parent.add("export", "copy arrays into a file that others read")
      .word("URI", copy->uri, kContainer)
      .optional_word("NAME", copy->names, "of arrays (all)")
      .option("--to", copy->file, kFile)
      .required()
      .option("--slice", copy->slice, "a part of one array, as in Python: 10:20,:,5")
      .flag("--replace", copy->may_replace, "replace the file that is there")
      .footer(
          "Attributes go along where the format has some: HDF5, NetCDF, Zarr.\n"
          "Examples:\n  outcore arrays export run.oca u --to u.npy\n"
          "  outcore arrays export run.oca --to run.h5\n"
          "  outcore arrays export run.oca u --slice 0:10,:,5 --to plane.nc")
      .runs([copy] { return done(export_arrays(*copy)); });
  parent.add("import", "copy arrays of a file into a container")
      .word("FILE", copy->file, kFile)
      .optional_word("NAME", copy->names, "of arrays in it (all)")
      .option("--to", copy->uri, "the container; created if it is missing")
      .required()
      .flag("--replace", copy->may_replace, "replace arrays that are there")
      .option("--compress", copy->compress, "lz4, zstd or zstd:LEVEL, each tile (none)")
      .option("--tiles", copy->tiles,
              "64,64,64: of arrays with so many dimensions (one piece; compressed: about 1 MiB)")
      .footer(
          "All of them are there afterwards, or none.\n"
          "Examples:\n  outcore arrays import u.npy --to run.oca\n"
          "  outcore arrays import climate.nc temperature --to run.oca\n"
          "  outcore arrays import u.npy --to run.oca --compress zstd --tiles 64,64,64")
      .runs([copy] { return done(import_arrays(*copy)); });
}

void add_drain(CommandSyntax& parent) {
  const auto drain = std::make_shared<DrainCommand>();
  parent.add("drain", "copy finished arrays to another container, verified")
      .word("URI", drain->from, kContainer)
      .optional_word("NAME", drain->names, "of arrays (all)")
      .option("--to", drain->to, "the other container; created if it is missing")
      .required()
      .option("--rate", drain->rate, "at most so many bytes a second: 200M (no limit)")
      .flag("--remove", drain->may_remove,
            "remove them here when all are there; who reads here finds them there")
      .flag("--json", drain->is_json, kJson)
      .footer(
          "Arrays that are there already are not copied again: after an interruption it goes on.\n"
          "Example:\n  outcore arrays drain /pmem/run.oca --to /archive/run.oca --rate 200M "
          "--remove")
      .runs([drain] { return done(drain_arrays(*drain)); });
}

void add_verify(CommandSyntax& parent) {
  const auto words = std::make_shared<ArraysVerify>();
  parent.add("verify", "read arrays, and compare them with their checksums")
      .word("URI", words->uri, kContainer)
      .optional_word("NAME", words->name, "an array (all)")
      .flag("--json", words->is_json, kJson)
      .footer(
          "A line for each damage, with where it is.\n"
          "Exit status: 0 all of it is what was stored; 1 it is damaged, or cannot be opened; 2 "
          "usage.\n"
          "Examples:\n  outcore arrays verify run.oca\n  outcore arrays verify run.oca u")
      .runs([words] { return verify_arrays(*words); });
}

void add_picture(CommandSyntax& parent) {
  const auto show = std::make_shared<ArraysShow>();
  parent.add("show", "a slice as a picture, or one value")
      .word("URI", show->uri, kContainer)
      .word("NAME", show->name, "of the array")
      .option("--slice", show->slice,
              "a plane or a row, as in Python: 5,:,10:20 (the plane in the middle)")
      .option("--out", show->picture, "the picture, .png (NAME.png)")
      .option("--colors", show->colors, "viridis, magma, coolwarm or gray (viridis)")
      .one_of(color_names())
      .option("--range", show->range, "LOW:HIGH, the ends of the colours (all numbers)")
      .flag("--replace", show->may_replace, "replace the picture that is there")
      .flag("--json", show->is_json, kJson)
      .footer(
          "A plane is a map, its first row on top; a row is a curve. NaNs are hatched. Of complex "
          "numbers\nit shows the magnitudes.\n"
          "Example:\n  outcore arrays show run.oca u --slice 5,:,: --out plane.png")
      .runs([show] { return done(show_array(*show)); });
}

}  // namespace

void add_arrays(CommandSyntax& outcore) {
  CommandSyntax& parent = outcore.add(
      "arrays", "containers of named arrays: ls, info, export, import, drain, show, verify");
  parent.footer(
      "Examples:\n  outcore arrays ls run.oca\n  outcore arrays export run.oca u --to u.npy\n"
      "  outcore arrays show run.oca u --slice 5,:,:");
  add_looks(parent);
  add_copies(parent);
  add_drain(parent);
  add_picture(parent);
  add_verify(parent);
}

}  // namespace outcore::cli
