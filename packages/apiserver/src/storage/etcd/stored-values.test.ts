import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { newLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newObjectCodec } from "../object-codec.ts";
import { suiteResource, unlimitedEntries } from "../testing.ts";
import { StoredValues } from "./stored-values.ts";
import { isKeyOutOfReach, KeyOutOfReach, type Transformer } from "./transformer.ts";

const away = new KeyOutOfReach("the key is away");
const throws = (): never => {
  throw away;
};

for (const { name, fromStored } of [
  { name: "at once", fromStored: throws },
  { name: "later", fromStored: async () => throws() },
] as { name: string; fromStored: Transformer["fromStored"] }[]) {
  test(`a value whose decryption fails ${name} is an internal error that names the key, and is logged once`, async () => {
    const lines: string[] = [];
    const values = new StoredValues({
      codec: newObjectCodec(suiteResource, "application/json", unlimitedEntries()),
      transformer: { toStored: (value) => value, fromStored },
      prefix: "/registry/configmaps/",
      log: newLogger({ write: (line) => void lines.push(line) }),
      turns: new Turns(),
    });
    const kv = { key: "/registry/configmaps/web/a", value: Buffer.from("secret"), modRevision: 3 };
    await assert.rejects(
      async () => values.entry(kv),
      (err: Error & { code?: number }) => {
        assert.equal(err.code, 500);
        assert.match(err.message, /unable to decode the value of \/registry\/configmaps\/web\/a in etcd$/);
        return isKeyOutOfReach(err);
      },
    );
    assert.equal(lines.length, 1);
    assert.match(lines.join(), /cannot decode a value in etcd.*the key is away.*web\/a/s);
  });
}
