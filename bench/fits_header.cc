#include "bench/fits_header.h"

#include "bench/check.h"
#include "cli/text.h"

namespace outcore::bench {

FitsHeader::FitsHeader(const std::array<uint64_t, 3>& sides) {
  BENCH_CHECK(sides[0] != 0 && sides[1] != 0 && sides[2] != 0);
  add("SIMPLE", "T", "this is a FITS file");
  add("BITPIX", "32", "32-bit whole numbers, highest byte first");
  add("NAXIS", "3", "a cube");
  add("NAXIS1", std::to_string(sides[0]), "pixels of a row");
  add("NAXIS2", std::to_string(sides[1]), "rows of an image");
  add("NAXIS3", std::to_string(sides[2]), "images, one after the other in time");
  add("BUNIT", "'adu     '", "what a pixel counts");
  add("COMMENT Made-up images of one part of the sky: noise, and stars that stay where");
  add("COMMENT they are (outcore bench images).");
  add("END");
  text_.resize(whole_blocks(text_.size()), ' ');
  file_bytes_ = text_.size() + whole_blocks(sides[0] * sides[1] * sides[2] * sizeof(uint32_t));
}

void FitsHeader::add(const std::string& card) {
  BENCH_CHECK(card.size() <= kCardBytes);
  text_ += card;
  text_.append(kCardBytes - card.size(), ' ');
}

// In fixed format: numbers and truths end in column 30, texts begin in column 11.
void FitsHeader::add(const char* keyword, const std::string& value, const char* comment) {
  const char* const form = value.front() == '\'' ? "%-8s= %-20s / %s" : "%-8s= %20s / %s";
  add(cli::format(form, keyword, value.c_str(), comment));
}

}  // namespace outcore::bench
