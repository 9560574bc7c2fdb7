#include "constraints/schema_format.h"

#include <fmt/format.h>

namespace kvasir::constraints {
namespace {

std::string Date() {
  // Years divisible by 4, but by 100 only if by 400.
  const std::string leap =
      "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29";
  return "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"
         "02-(0[1-9]|1[0-9]|2[0-8]))|" +
         leap + ")";
}

// Second 60 is a leap second, at 23:59 UTC: for every offset another local time.
std::string Time() {
  std::string leap = "23:59:60(\\.[0-9]+)?[Zz]";
  for (int hour = 0; hour < 24; ++hour) {
    for (int minute = 0; minute < 60; ++minute) {
      const int east = hour * 60 + minute;  // The offset that makes hour:minute 23:59 UTC …
      const int plus = (east + 1) % 1440;
      const int minus = (1440 - plus) % 1440;
      leap += fmt::format("|{:02}:{:02}:60(\\.[0-9]+)?(\\+{:02}:{:02}|-{:02}:{:02})", hour, minute,
                          plus / 60, plus % 60, minus / 60, minus % 60);
    }
  }
  return "(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5]["
         "0-9])|" +
         leap + ")";
}

std::string Uri() {
  const std::string escaped = "%[0-9A-Fa-f]{2}";
  const std::string plain = "A-Za-z0-9._~!$&'()*+,;=\\-";
  const std::string pchar = "([" + plain + ":@]|" + escaped + ")";
  const std::string hex = "[0-9A-Fa-f]{1,4}";
  const std::string octet = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  const std::string ipv4 = octet + "(\\." + octet + "){3}";
  const std::string last = "(" + hex + ":" + hex + "|" + ipv4 + ")";
  std::string ipv6 = "(" + hex + ":){6}" + last + "|::(" + hex + ":){5}" + last;
  for (int left = 1; left <= 5; ++left) {
    ipv6 += fmt::format("|({0}(:{0}){{0,{1}}})?::({0}:){{{2}}}{3}", hex, left - 1, 5 - left, last);
  }
  ipv6 += fmt::format("|({0}(:{0}){{0,5}})?::{0}|({0}(:{0}){{0,6}})?::", hex);
  const std::string host = "(\\[(" + ipv6 + "|[Vv][0-9A-Fa-f]+\\.[" + plain + ":]+)\\]|([" + plain +
                           "]|" + escaped + ")*)";
  const std::string authority = "(([" + plain + ":]|" + escaped + ")*@)?" + host + "(:[0-9]*)?";
  const std::string path = "(//" + authority + "(/" + pchar + "*)*|/(" + pchar + "+(/" + pchar +
                           "*)*)?|" + pchar + "+(/" + pchar + "*)*|)";
  const std::string query = "([" + plain + ":@/?]|" + escaped + ")*";
  return "[A-Za-z][A-Za-z0-9+.-]*:" + path + "(\\?" + query + ")?(#" + query + ")?";
}

std::string Email() {
  const std::string atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+";
  const std::string label = "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?";
  const std::string octet = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  return "(" + atom + "(\\." + atom + ")*|\"([ !#-\\[\\]-~]|\\\\[ -~])*\")@(" + label + "(\\." +
         label + ")*|\\[" + octet + "(\\." + octet + "){3}\\])";
}

}  // namespace

std::optional<std::string> FormatRegex(std::string_view name) {
  if (name == "date") return Date();
  if (name == "time") return Time();
  if (name == "date-time") return Date() + "[Tt]" + Time();
  if (name == "uuid") return "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}";
  if (name == "email") return Email();
  if (name == "uri") return Uri();
  if (name == "ipv4") {
    const std::string octet = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    return octet + "(\\." + octet + "){3}";
  }
  return std::nullopt;
}

}  // namespace kvasir::constraints
