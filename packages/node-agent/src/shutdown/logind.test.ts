import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { connectToBus } from "../dbus/connection.ts";
import { startLogind, whyNoLogind } from "../testing/logind.ts";
import { connectToLogind } from "./logind.ts";

test("a real logind delays the shutdown while the inhibitor lock is held, up to the configured time", {
  skip: whyNoLogind,
}, async (t) => {
  const { address, configDir, units, inhibitors, powerOff } = await startLogind(t);
  const logind = await connectToLogind({ clock: realClock, address, configDir });
  t.after(() => logind.close());
  assert.equal(await logind.inhibitDelayMs(), 5_000);
  await logind.overrideInhibitDelay(20_000);
  assert.equal(await logind.inhibitDelayMs(), 20_000);
  assert.match(
    await readFile(join(configDir, "99-kubelet.conf"), "utf8"),
    /^# Kubelet logind override\n\[Login\]\nInhibitDelayMaxSec=20\n$/,
  );
  await logind.overrideInhibitDelay(20_600);
  assert.equal(await logind.inhibitDelayMs(), 21_000, "rounded");

  const heard: boolean[] = [];
  await logind.onShutdown((goesDown) => void heard.push(goesDown));
  const lock = await logind.inhibitShutdown();
  assert.deepEqual((await inhibitors())[0]?.slice(0, 4), [
    "shutdown",
    "kubelet",
    "Kubelet needs time to handle node shutdown",
    "delay",
  ]);
  await powerOff();
  await waitFor(() => heard.length > 0, { what: "logind to announce the end" });
  assert.deepEqual([heard, units], [[true], []], "the machine waits");
  lock.release();
  await waitFor(() => units.length > 0, { what: "logind to go on" });
  assert.deepEqual(units, ["poweroff.target"]);
});

test("connecting fails without a bus, and taking the inhibitor lock fails without its program", {
  skip: whyNoLogind,
}, async (t) => {
  await assert.rejects(connectToBus("unix:path=/nonexistent/bus"), /ENOENT/);
  await assert.rejects(connectToBus("tcp:host=localhost"), /no unix socket in the bus address/);
  const { address } = await startLogind(t);
  const logind = await connectToLogind({ clock: realClock, address, inhibitProgram: "/nonexistent/inhibit" });
  t.after(() => logind.close());
  await assert.rejects(logind.inhibitShutdown(), /failed creating systemd inhibitor: spawn \/nonexistent\/inhibit ENOENT/);
  const failing = await connectToLogind({ clock: realClock, address, inhibitProgram: "false" });
  t.after(() => failing.close());
  await assert.rejects(failing.inhibitShutdown(), /failed creating systemd inhibitor: /);
});

test("a logind that cannot be reloaded is reported", { skip: whyNoLogind }, async (t) => {
  const { address, configDir, refuseReload } = await startLogind(t);
  const logind = await connectToLogind({ clock: realClock, address, configDir });
  t.after(() => logind.close());
  refuseReload();
  await assert.rejects(logind.overrideInhibitDelay(20_000), /^Error: unable to reload logind conf: /);
});

test("a lock ends when it is released, and those that are still held when the connection is closed", {
  skip: whyNoLogind,
}, async (t) => {
  const { address, configDir } = await startLogind(t);
  const inhibitProgram = join(configDir, "inhibit");
  const ended = join(configDir, "ended");
  await writeFile(ended, "");
  await writeFile(inhibitProgram, `#!/bin/sh\necho held\ncat\necho ended >> ${ended}\n`, { mode: 0o755 });
  const logind = await connectToLogind({ clock: realClock, address, inhibitProgram });
  const first = await logind.inhibitShutdown();
  await logind.inhibitShutdown();
  const count = async () => (await readFile(ended, "utf8")).split("\n").length - 1;
  first.release();
  await waitFor(async () => (await count()) === 1, { what: "the first lock to end" });
  logind.close();
  await waitFor(async () => (await count()) === 2, { what: "the second lock to end" });
});
