# cmake -DFOLDER=web -DOUT=FILE.cc -P embed.cmake: the files of a folder as a C++ source that
# defines kvasir::server::StaticFiles (src/server/static_files.h).
set(TYPE_html "text/html; charset=utf-8")
set(TYPE_css "text/css; charset=utf-8")
set(TYPE_js "text/javascript; charset=utf-8")
set(TYPE_svg "image/svg+xml")

file(GLOB files RELATIVE ${FOLDER} ${FOLDER}/*.html ${FOLDER}/*.css ${FOLDER}/*.js ${FOLDER}/*.svg)
list(SORT files)
set(arrays "")
set(table "")
foreach(name IN LISTS files)
  file(READ ${FOLDER}/${name} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
  string(MAKE_C_IDENTIFIER ${name} identifier)
  get_filename_component(suffix ${name} LAST_EXT)
  string(SUBSTRING ${suffix} 1 -1 suffix)
  set(path "/${name}")
  if(name STREQUAL "index.html")
    set(path "/")
  endif()
  string(APPEND arrays "constexpr char k_${identifier}[] = {${bytes}'\\0'};\n")
  string(APPEND table "    {\"${path}\", \"${TYPE_${suffix}}\", "
                      "{k_${identifier}, sizeof(k_${identifier}) - 1}},\n")
endforeach()
file(WRITE ${OUT}.new "#include \"server/static_files.h\"
namespace kvasir::server {
namespace {
${arrays}constexpr StaticFile kFiles[] = {
${table}};
}  // namespace
std::span<const StaticFile> StaticFiles() { return kFiles; }
}  // namespace kvasir::server
")
file(RENAME ${OUT}.new ${OUT})
