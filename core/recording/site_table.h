// SiteTable: the places in the code that touch absent pages: how often, how long they wait, and in
// which order they touch. A place is an address within a module, which whoever reads the record
// turns into a line (`outcore report`). One thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "core/base/json.h"
#include "core/published/events.h"

namespace outcore::recording {

class SiteTable {
 public:
  static constexpr size_t kSitesMax = 4096;  // further ones are counted as one
  static constexpr size_t kSitesTold = 64;

  explicit SiteTable(size_t sites_max = kSitesMax) : sites_max_(sites_max) {}

  // `one_in`: so many faults are like it. `file`: a number, for to_json().
  void note(const published::Event& fault, uint32_t file, uint64_t one_in);
  uint64_t sampled() const { return sampled_; }
  // The places with the largest shares. Those of message delivery are unknown, and not among them.
  base::Json to_json(const std::map<uint32_t, std::string>& uri_of_file) const;

 private:
  struct Place {
    std::string module;   // empty: no file is mapped there
    uint64_t offset = 0;  // in the file; without one, the address
  };
  struct Site {
    Place place;
    double faults = 0, stalled_s = 0;
    std::array<double, static_cast<size_t>(published::Pattern::kCount)> patterns{};
    std::map<uint32_t, double> files;
  };
  static Place place_of(uint64_t address);

  const size_t sites_max_;
  std::unordered_map<uint64_t, Site> sites_;
  Site others_;
  double faults_ = 0, unknown_ = 0;
  uint64_t sampled_ = 0;
};

}  // namespace outcore::recording
