#include "arrays/formats/netcdf_attributes.h"

#include <netcdf.h>

#include <cstdio>

namespace outcore::cli {
namespace {

// Of one type or another, as text.
std::string text_of_attribute(int group, int variable, const char* name) {
  nc_type type = 0;
  size_t count = 0;
  if (nc_inq_att(group, variable, name, &type, &count) != NC_NOERR || count == 0) return {};
  if (type == NC_CHAR) {
    std::string text(count, '\0');
    nc_get_att_text(group, variable, name, text.data());
    return text.substr(0, text.find('\0'));
  }
  std::vector<std::string> parts;
  if (type == NC_STRING) {
    std::vector<char*> texts(count, nullptr);
    if (nc_get_att_string(group, variable, name, texts.data()) != NC_NOERR) return {};
    for (const char* text : texts) parts.emplace_back(text != nullptr ? text : "");
    nc_free_string(count, texts.data());
  } else if (type == NC_FLOAT || type == NC_DOUBLE) {
    std::vector<double> values(count);
    if (nc_get_att_double(group, variable, name, values.data()) != NC_NOERR) return {};
    for (const double value : values) {
      char text[64];
      std::snprintf(text, sizeof text, type == NC_FLOAT ? "%.9g" : "%.17g", value);
      parts.emplace_back(text);
    }
  } else if (type == NC_UINT64) {
    std::vector<unsigned long long> values(count);
    if (nc_get_att_ulonglong(group, variable, name, values.data()) != NC_NOERR) return {};
    for (const unsigned long long value : values) parts.push_back(std::to_string(value));
  } else {
    std::vector<long long> values(count);
    if (nc_get_att_longlong(group, variable, name, values.data()) != NC_NOERR) return {};
    for (const long long value : values) parts.push_back(std::to_string(value));
  }
  if (parts.size() == 1) return parts.front();
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return "[" + text + "]";
}

}  // namespace

Texts load_netcdf_attributes(int group, int variable) {
  Texts texts;
  int count = 0;
  if (variable == NC_GLOBAL)
    nc_inq_natts(group, &count);
  else
    nc_inq_varnatts(group, variable, &count);
  for (int i = 0; i < count; ++i) {
    char name[NC_MAX_NAME + 1] = "";
    if (nc_inq_attname(group, variable, i, name) != NC_NOERR || name[0] == 0) continue;
    if (std::string text = text_of_attribute(group, variable, name); !text.empty())
      texts[name] = std::move(text);
  }
  return texts;
}

}  // namespace outcore::cli
