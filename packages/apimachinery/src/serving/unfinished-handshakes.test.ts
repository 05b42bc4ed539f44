import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { test } from "node:test";
import { UnfinishedHandshakes } from "./unfinished-handshakes.ts";

/** Adds connections and tells which were closed. */
function setUp(most: number) {
  const unfinished = new UnfinishedHandshakes(most);
  const closed: string[] = [];
  const connect = (remoteAddress: string, remotePort: number): EventEmitter => {
    const socket = Object.assign(new EventEmitter(), {
      ...{ remoteAddress, remotePort },
      destroy: () => void closed.push(`${remoteAddress} ${remotePort}`),
    });
    unfinished.add(socket as unknown as Socket); // cast: all that is used of it
    return socket;
  };
  return { unfinished, closed, connect };
}

test("of more than the most of one address the oldest is closed", () => {
  const { closed, connect } = setUp(2);
  for (const port of [1, 2]) connect("10.0.0.1", port);
  for (const port of [1, 2]) connect("10.0.0.2", port);
  assert.deepEqual(closed, []);
  connect("10.0.0.1", 3);
  assert.deepEqual(closed, ["10.0.0.1 1"]);
  connect("10.0.0.1", 4);
  assert.deepEqual(closed, ["10.0.0.1 1", "10.0.0.1 2"]);
});

test("finished and closed ones do not count", () => {
  const { unfinished, closed, connect } = setUp(2);
  connect("10.0.0.1", 1);
  connect("10.0.0.1", 2).emit("close");
  unfinished.finished({ remoteAddress: "10.0.0.1", remotePort: 1 });
  for (const port of [3, 4]) connect("10.0.0.1", port);
  assert.deepEqual(closed, []);
  connect("10.0.0.1", 5);
  assert.deepEqual(closed, ["10.0.0.1 3"]);
});

test("a late close of an earlier connection leaves the one with its port alone", () => {
  const { closed, connect } = setUp(1);
  const earlier = connect("10.0.0.1", 1);
  connect("10.0.0.1", 1);
  earlier.emit("close");
  connect("10.0.0.1", 2);
  assert.deepEqual(closed, ["10.0.0.1 1"]);
});

test("the end of one leaves the others of its address counted", () => {
  const { unfinished, closed, connect } = setUp(3);
  for (const port of [1, 2, 3]) connect("10.0.0.1", port);
  unfinished.finished({ remoteAddress: "10.0.0.1", remotePort: 2 });
  connect("10.0.0.1", 4);
  assert.deepEqual(closed, []);
  connect("10.0.0.1", 5);
  assert.deepEqual(closed, ["10.0.0.1 1"]);
});

test("a connection that is closed already is left out", () => {
  const { unfinished, closed, connect } = setUp(1);
  unfinished.add(new EventEmitter() as unknown as Socket); // cast: a closed one has no addresses
  connect("10.0.0.1", 1);
  assert.deepEqual(closed, []);
});

test("those that are left of an address are counted when others have gone", () => {
  const { closed, connect } = setUp(2);
  connect("10.0.0.1", 1);
  connect("10.0.0.1", 2).emit("close");
  for (const port of [3, 4]) connect("10.0.0.1", port);
  assert.deepEqual(closed, ["10.0.0.1 1"]);
});
