// Looks a possibly damaged LMDB file over, where it can do no harm.
#ifndef KVASIR_STORE_LMDB_CHECK_H_
#define KVASIR_STORE_LMDB_CHECK_H_

#include <string>

namespace kvasir::store {

// Whether LMDB can open the file in this directory and walk all its keys, free pages too. LMDB
// trusts its file and may abort on a damaged page, so this happens in a child process, which ends
// with its answer; one that does not end in time is ended. True where there is no file yet. Values
// are not read: their checksums speak for them. The directory must not be open in this process.
bool LmdbFileIsSound(const std::string& directory);

}  // namespace kvasir::store

#endif  // KVASIR_STORE_LMDB_CHECK_H_
