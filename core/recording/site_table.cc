#include "core/recording/site_table.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <vector>

#include "core/base/assert.h"
#include "core/os/file_calls.h"

namespace outcore::recording {

using base::Json;
using published::Pattern;

constexpr size_t kMapsBytesMax = 4 << 20;

// A line of maps: "from-to rwxp offset device inode   path".
SiteTable::Place SiteTable::place_of(uint64_t address) {
  std::istringstream maps(os::read_file("/proc/self/maps", kMapsBytesMax));
  for (std::string line; std::getline(maps, line);) {
    const char* at = line.data();
    const char* const end = at + line.size();
    uint64_t from = 0, to = 0, offset = 0;
    at = std::from_chars(at, end, from, 16).ptr;
    if (at != end) at = std::from_chars(at + 1, end, to, 16).ptr;
    if (address < from || address >= to || end - at < 6) continue;
    static_cast<void>(std::from_chars(at + 6, end, offset, 16));
    const size_t path = line.find('/');
    if (path == std::string::npos) break;
    return {line.substr(path), address - from + offset};
  }
  return {"", address};
}

void SiteTable::note(const published::Event& fault, uint32_t file, uint64_t one_in) {
  OC_CHECK(fault.kind == published::EventKind::kFault);
  const auto weight = static_cast<double>(one_in);
  ++sampled_;
  faults_ += weight;
  if (fault.site == 0) {
    unknown_ += weight;
    return;
  }
  auto found = sites_.find(fault.site);
  if (found == sites_.end() && sites_.size() < sites_max_) {
    found = sites_.try_emplace(fault.site).first;
    found->second.place = place_of(fault.site);
  }
  Site& site = found == sites_.end() ? others_ : found->second;
  site.faults += weight;
  site.stalled_s += static_cast<double>(fault.duration_ns) * 1e-9 * weight;
  site.patterns[static_cast<size_t>(fault.pattern)] += weight;
  site.files[file] += weight;
}

Json SiteTable::to_json(const std::map<uint32_t, std::string>& uri_of_file) const {
  std::vector<const Site*> all;
  for (const auto& [address, site] : sites_) all.push_back(&site);
  std::sort(all.begin(), all.end(),
            [](const Site* a, const Site* b) { return a->faults > b->faults; });
  all.resize(std::min(all.size(), kSitesTold));
  Json list = Json::array();
  for (const Site* const site : all) {
    Json json;
    json["module"] = site->place.module;
    json["offset"] = site->place.offset;
    json["faults"] = site->faults;
    json["share"] = site->faults / faults_;
    json["stalled_s"] = site->stalled_s;
    const auto share = [&](Pattern pattern) {
      return site->patterns[static_cast<size_t>(pattern)] / site->faults;
    };
    json["pattern"] = Json{{"sequential", share(Pattern::kSequential)},
                           {"strided", share(Pattern::kStrided)},
                           {"random", share(Pattern::kRandom)}};
    const auto most =
        std::max_element(site->files.begin(), site->files.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (const auto uri = uri_of_file.find(most->first); uri != uri_of_file.end())
      json["file_uri"] = uri->second;
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace outcore::recording
