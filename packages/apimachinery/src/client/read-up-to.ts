/**
 * Reads an answer as a whole. The connection is closed when it fails.
 * @param answer a response without an encoding, which yields Buffers
 * @throws what `tooLong` returns, once more than `mostBytes` have arrived
 */
export async function readUpTo(answer: AsyncIterable<Buffer>, mostBytes: number, tooLong: () => Error): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer) {
    size += chunk.length;
    if (size > mostBytes) throw tooLong();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
