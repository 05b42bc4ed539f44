import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { hasExitCode, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { unpackedPackage } from "../framework/debian.ts";
import { importImages, type Machine } from "./machine.ts";
import { type Network, newNetwork } from "./network.ts";

/** The archive's program, before the links to it are made. */
export const coxswain = "/opt/coxswain/bin/coxswain";
export const admin = "/etc/kubernetes/admin.conf";
export const minutes = (n: number): number => n * 60_000;

/** A cluster that `coxswain init` and `join` made of machines on one network. */
export class MachineCluster {
  readonly network: Network;
  readonly #machines = new Map<string, { readonly machine: Machine; readonly address: string }>();
  #next = 11;

  private constructor(network: Network) {
    this.network = network;
  }

  static async start(): Promise<MachineCluster> {
    return new MachineCluster(await newNetwork());
  }

  remove(): Promise<void> {
    return this.network.remove();
  }

  machine(name: string): Machine {
    return this.#named(name).machine;
  }

  address(name: string): string {
    return this.#named(name).address;
  }

  /** As a machine that is lost. */
  async kill(name: string): Promise<void> {
    await this.machine(name).kill();
    this.#machines.delete(name);
  }

  /** Boots machines with etcdctl; they belong to no cluster yet. */
  async boot(...names: string[]): Promise<void> {
    const client = join(unpackedPackage("etcd-client"), "usr/bin/etcdctl");
    const booted = names.map(async (name) => {
      const number = this.#next++;
      const machine = await this.network.boot(name, number);
      cpSync(client, machine.path("/usr/bin/etcdctl"));
      this.#machines.set(name, { machine, address: this.network.address(number) });
    });
    await Promise.all(booted);
  }

  /** By the API server of a machine of the control plane. */
  kubectl(name: string, ...args: string[]): Promise<string> {
    return this.machine(name).kubectl(admin, ...args);
  }

  /** The first machine of the control plane. @returns what init printed */
  init(name: string, ...flags: string[]): Promise<string> {
    return this.machine(name).run(coxswain, "init", ...flags);
  }

  /** Further machines of the control plane, one after the other. @param by a machine of the control plane */
  async joinControlPlane(by: string, ...names: string[]): Promise<void> {
    const printed = await this.machine(by).run(coxswain, "init", "--upload-certs");
    const [line] = linesIn(printed).filter((words) => words.includes("--control-plane"));
    for (const name of names) await this.machine(name).run(coxswain, ...(line as string[]));
  }

  /** Nodes, with images for their pods. */
  async joinNodes(by: string, ...names: string[]): Promise<void> {
    const line = await this.machine(by).run(coxswain, "token", "create", "--print-join-command");
    await Promise.all(
      names.map(async (name) => {
        await this.machine(name).run(coxswain, ...line.trim().split(" ").slice(1));
        await importImages(this.machine(name));
      }),
    );
  }

  whenReady(by: string, ...names: string[]): Promise<unknown> {
    return Promise.all(
      names.map((name) =>
        waitFor(async (seen) => new RegExp(`^${name} +Ready `, "m").test(seen(await this.kubectl(by, "get", "nodes"))), {
          timeoutMs: minutes(3),
          retry: hasExitCode,
          what: `${name} to be ready`,
        }),
      ),
    );
  }

  #named(name: string): { readonly machine: Machine; readonly address: string } {
    const found = this.#machines.get(name);
    assert.ok(found, `no machine ${name}`);
    return found;
  }

  /** Copies a file of a machine to others. */
  copy(path: string, from: string, ...to: string[]): void {
    for (const name of to) cpSync(this.machine(from).path(path), this.machine(name).path(path), { recursive: true });
  }
}

/** The join lines that `init` prints, as words after `coxswain`. */
export const linesIn = (output: string): string[][] =>
  output
    .split("\n")
    .filter((line) => line.startsWith("  coxswain join "))
    .map((line) => line.trim().split(" ").slice(1));
