// PNG, by libpng. See arrays/commands/array_picture.h.
#include <png.h>

#include <cerrno>
#include <cstring>

#include "arrays/commands/array_picture.h"

// C++ at both ends: only the name is C's.
#pragma GCC diagnostic push
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wreturn-type-c-linkage"
#endif
extern "C" outcore::Status outcore_write_png(const outcore::cli::Picture& picture,
                                             const std::string& path) {
  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  image.width = picture.width;
  image.height = picture.height;
  image.format = PNG_FORMAT_RGB;
  const auto stride = static_cast<png_int_32>(picture.width * 3);
  if (png_image_write_to_file(&image, path.c_str(), 0, picture.rgb.data(), stride, nullptr) != 0)
    return {};
  return outcore::Error{EIO, "write " + path + ": " + image.message};
}
#pragma GCC diagnostic pop
