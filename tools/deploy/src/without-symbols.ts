/** Field offsets of the file header and of a program header. Source: elf(5), Elf64_Ehdr and Elf64_Phdr */
const header = {
  programTable: 32,
  sectionTable: 40,
  programEntryBytes: 54,
  programEntries: 56,
  sectionEntries: 60,
  sectionNames: 62,
};
const segment = { offset: 8, bytesInFile: 32 };
/** The magic number, 64 bits, little-endian. */
const identification = Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1]);

/**
 * Removes from an ELF program what only debuggers read: the sections behind the last segment, and the section table. The kernel
 * and the dynamic loader use only segments. For Node this saves a fifth. strip(1) of binutils does the same, but is missing on
 * most machines.
 * @throws Error when the file is not a 64-bit little-endian ELF program
 */
export function withoutSymbols(program: Buffer): Buffer {
  if (!program.subarray(0, identification.length).equals(identification))
    throw new Error("not a 64-bit little-endian ELF program");
  const table = Number(program.readBigUInt64LE(header.programTable));
  const entryBytes = program.readUInt16LE(header.programEntryBytes);
  const ends = Array.from({ length: program.readUInt16LE(header.programEntries) }, (_, index) => {
    const at = table + index * entryBytes;
    return Number(program.readBigUInt64LE(at + segment.offset) + program.readBigUInt64LE(at + segment.bytesInFile));
  });
  const kept = Buffer.from(program.subarray(0, Math.max(...ends)));
  kept.writeBigUInt64LE(0n, header.sectionTable);
  kept.writeUInt16LE(0, header.sectionEntries);
  kept.writeUInt16LE(0, header.sectionNames);
  return kept;
}
