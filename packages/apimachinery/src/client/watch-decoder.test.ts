import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { StatusError } from "../errors/status-error.ts";
import { decodeWatchStream } from "./watch-decoder.ts";

const events = (text: string) =>
  Array.fromAsync(decodeWatchStream(Readable.from([Buffer.from(text)]), new AbortController().signal));

for (const line of ['{"type":"ERROR"}', '{"type":"ADDED","object":null}', '{"object":{}}', "null", "1"]) {
  test(`a line that is no event (${line}) ends the watch and says so`, async () => {
    await assert.rejects(events(`${line}\n`), /^Error: unable to decode an event from the watch stream$/);
  });
}

test("an ERROR event is thrown as the Status that it has", async () => {
  await assert.rejects(events('{"type":"ERROR","object":{"code":410,"reason":"Expired"}}\n'), (err) => {
    return err instanceof StatusError && err.code === 410;
  });
});

test("an event whose line does not end counts", async () => {
  assert.equal((await events('{"type":"ADDED","object":{}}')).length, 1);
});
