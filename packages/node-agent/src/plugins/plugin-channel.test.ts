import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newPluginChannel, PluginError } from "./plugin-channel.ts";
import { registrationMessages } from "./registration-schema.ts";

test("a plugin that is not there fails calls, and ends a stream at once", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-channel-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const channel = newPluginChannel(join(dir, "none.sock"), registrationMessages);
  t.after(() => channel.close());
  await assert.rejects(channel.call("/p.S/M", "InfoRequest", "PluginInfo", {}, 50), PluginError);
  let ended = false;
  void channel
    .watch("/p.S/W", Buffer.alloc(0), () => assert.fail("no message"), 50)
    .then(() => {
      ended = true;
    });
  await waitFor(() => ended, { what: "the end of the stream" });
});
