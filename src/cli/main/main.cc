#include "cli/command.h"

int main(int argc, char** argv) { return kvasir::cli::Main(argc, argv); }
