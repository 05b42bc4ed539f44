import { type Client, newClient } from "@coxswain/apimachinery/client/client";
import type { ClientConfig } from "@coxswain/apimachinery/client/config";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { newProcess, type SimulatedProcess } from "@coxswain/testing/time/time-line";
import type { World } from "../world/world.ts";
import { adminToken } from "./api-server.ts";
import { type ApiNetwork, type Backend, newSimulatedTransport, type SimulatedTransport } from "./network.ts";

/** Everything that belongs to one incarnation of a daemon; nothing is kept for the next one. */
export interface Life {
  readonly process: SimulatedProcess;
  readonly transport: SimulatedTransport;
  readonly clientConfig: ClientConfig;
  readonly client: Client;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** A program that can crash at any point and is then restarted, as by its supervisor. */
export interface Daemon {
  readonly name: string;
  readonly life: Life | undefined;
  start(): void;
  crash(): void;
  /** Called after the end of the simulation: releases everything that its incarnations wait for. */
  release(): void;
}

interface DaemonOptions {
  readonly world: World;
  readonly name: string;
  readonly backend: Backend;
  readonly network: ApiNetwork;
  readonly skewMs?: number;
  readonly log: (process: SimulatedProcess) => Logger;
  /** Runs the program. When it exits by itself it is restarted after `restartMs`. */
  readonly run: (life: Life) => Promise<unknown>;
}

const restartMs = 2_000;

/**
 * A daemon that is not started yet. Each start gets its own process, clock and connections; what a crashed one still does is
 * lost.
 */
export function newDaemon(options: DaemonOptions): Daemon {
  const { world, name, backend, network } = options;
  let life: Life | undefined;
  let lives = 0;
  const releases: (() => void)[] = [];

  function start(): void {
    if (life !== undefined) return;
    const process = newProcess(world, `${name}#${++lives}`, options.skewMs);
    const transport = newSimulatedTransport(world, process, backend, network);
    const clientConfig: ClientConfig = { host: "http://simulated", token: adminToken, qps: -1, userAgent: name };
    const stopping = new AbortController();
    const mine: Life = {
      process,
      transport,
      clientConfig,
      client: newClient(clientConfig, { clock: process.clock, transport }),
      log: options.log(process),
      signal: stopping.signal,
    };
    life = mine;
    releases.push(() => {
      stopping.abort();
      transport.close();
    });
    world.note(`${process.name} starts`);
    const ended = (why: string): void => {
      if (life !== mine || !process.alive) return;
      world.note(`${process.name} ${why}`);
      process.crash();
      transport.breakWatches();
      life = undefined;
      world.after(restartMs, `${name}: restart`, start);
    };
    options.run(mine).then(
      () => ended("ends"),
      (err: unknown) => ended(`fails: ${String(err)}`),
    );
  }

  return {
    name,
    get life() {
      return life;
    },
    start,
    crash() {
      if (life === undefined) return;
      world.note(`${life.process.name} crashes`);
      life.process.crash();
      life.transport.breakWatches();
      life = undefined;
    },
    release() {
      life?.process.crash();
      for (const release of releases.splice(0)) release();
    },
  };
}
