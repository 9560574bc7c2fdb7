// Folders of JSON Schemas with instances, as benchmarks of constraints publish them.
#ifndef KVASIR_CLI_SCHEMA_FOLDER_H_
#define KVASIR_CLI_SCHEMA_FOLDER_H_

#include <string>
#include <vector>

#include "base/result.h"

namespace kvasir::cli {

// A value.
struct SchemaWithTexts {
  std::string name;  // Of the file.
  std::string schema;
  std::vector<std::string> texts;  // Instances, valid ones and others, as compact JSON.
};

// Every .json file of the folder that holds {"schema": …, "tests": [{"data": …}, …]} with at least
// one test, by name. kIo for what cannot be read, kBadData for a file that is not such a document,
// kUsage for a folder without any.
base::Result<std::vector<SchemaWithTexts>> ReadSchemaFolder(const std::string& folder);

}  // namespace kvasir::cli

#endif  // KVASIR_CLI_SCHEMA_FOLDER_H_
