import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "../../../testing/fast-check.ts";
import { type Form, newFieldsWriter } from "../testing/fields-writer.ts";
import { HpackError, newFieldsDecoder, staticFields } from "./hpack.ts";

/** COX_TEST_LONG: a hundred times as many connections. */
const numRuns = process.env["COX_TEST_LONG"] ? 100_000 : 1_000;
const seed = 7541;

const text = (maxLength: number): fc.Arbitrary<string> =>
  fc.uint8Array({ maxLength }).map((octets) => Buffer.from(octets).toString("latin1"));
/** A small set, so that names repeat. */
const name = fc.oneof(fc.constantFrom("a", "b", "c", "d", ...staticFields.map((field) => field.name)), text(8));
const value = fc.oneof(fc.constantFrom("", "1", "2", "GET", "404", "x".repeat(50), "y".repeat(200)), text(40));
const form: fc.Arbitrary<Form> = fc.record({
  indexed: fc.boolean(),
  literal: fc.constantFrom("remembered", "remembered", "forgotten", "never"),
  indexedName: fc.boolean(),
  coded: fc.boolean(),
});
const tableBytes = 300;
const aBlock = fc.record({
  sizes: fc.array(fc.nat(tableBytes), { maxLength: 2 }),
  fields: fc.array(fc.tuple(name, value, form), { maxLength: 12 }),
});
type Block = typeof aBlock extends fc.Arbitrary<infer T> ? T : never;

/** Encodes the blocks of one side of a connection. */
function written(blocks: readonly Block[]): Buffer[] {
  const writer = newFieldsWriter(tableBytes);
  return blocks.map(({ sizes, fields }) =>
    Buffer.from([...sizes.flatMap(writer.resize), ...fields.flatMap((field) => writer.field(...field))]),
  );
}

test("fields decode to the same values in every representation", () => {
  fc.assert(
    fc.property(fc.array(aBlock, { maxLength: 8 }), (blocks) => {
      const decoder = newFieldsDecoder({ tableBytes });
      const read = written(blocks).map((block) => decoder.decode(block).fields);
      assert.deepEqual(
        read,
        blocks.map(({ fields }) => fields.flatMap(([name, value, _form]) => [name, value])),
      );
    }),
    { numRuns, seed },
  );
});

test("random octets are decoded or refused with HpackError", () => {
  const change = fc.tuple(fc.nat(), fc.nat(255));
  fc.assert(
    fc.property(fc.array(aBlock, { minLength: 1, maxLength: 3 }), fc.array(change, { maxLength: 3 }), (blocks, changes) => {
      const decoder = newFieldsDecoder({ tableBytes, mostListBytes: 1_000 });
      for (const block of written(blocks)) {
        for (const [at, octet] of changes) if (block.length > 0) block[at % block.length] = octet;
        try {
          const { fields } = decoder.decode(block);
          const bytes = fields.reduce((sum, text) => sum + text.length + 16, 0);
          assert.ok(bytes <= 1_000);
        } catch (err) {
          if (!(err instanceof HpackError)) throw err;
          return;
        }
      }
    }),
    { numRuns, seed },
  );
});
