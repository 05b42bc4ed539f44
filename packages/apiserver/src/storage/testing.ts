import { ByteShare } from "@coxswain/apimachinery/process/memory/byte-share";
import { EntryMemory } from "./entry.ts";

/** Memory of a test's own entries. */
export function unlimitedEntries(): EntryMemory {
  return new EntryMemory(new ByteShare(Number.POSITIVE_INFINITY));
}
