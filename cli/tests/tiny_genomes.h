// TinyGenomes: FASTA files of a test's own, at the places where `outcore bench kmers --genomes`
// looks for them.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "bench/random.h"

namespace outcore::cli {

class TinyGenomes {
 public:
  explicit TinyGenomes(std::string folder) : folder_(std::move(folder)) {}
  const std::string& folder() const { return folder_; }
  // As "Genus/species/strain.fna".
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  void put(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name)) << text;
  }
  static std::string letters(uint64_t seed, size_t bases) {
    bench::Random random(seed);
    std::string all(bases, ' ');
    for (char& letter : all) letter = "ACGT"[random.below(4)];
    return all;
  }
  // With another letter in so many of hundred places.
  static std::string changed(std::string letters, uint64_t seed, uint64_t percent) {
    bench::Random random(seed);
    for (char& letter : letters)
      if (random.below(100) < percent) letter = "ACGT"[random.below(4)];
    return letters;
  }
  // Two genera; of one two species, of one of these two strains that differ little. One strain has
  // several sequences, one small letters, one a gap of unknown bases; files have three endings.
  void put_all() const {
    const std::string red = letters(1, 6000), red_wide = changed(red, 2, 6);
    put("Red/round/one.fna", ">one\n" + red + "\n");
    std::string two = changed(red, 3, 1);
    put("Red/round/two.fa", ">two\n" + two.substr(0, 2500) + "\nNNNNNNNN" + two.substr(2500));
    for (char& letter : two = red_wide) letter = static_cast<char>(std::tolower(letter));
    put("Red/wide/one.fasta", ">wide a\r\n" + two.substr(0, 3000) + "\r\n" + two.substr(3000));
    const std::string blue = letters(4, 5000);
    put("Blue/round/one.fna", ">a\n" + blue.substr(0, 2000) + "\n\n>b c d\n" + blue.substr(2000));
    put("Blue/round/README", "no genome");
    put("Green/README", "no genome, and no genus");
  }

 private:
  std::string folder_;
};

}  // namespace outcore::cli
