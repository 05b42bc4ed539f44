/**
 * Detects forwarding loops: queries that this server forwards come back to it when the node's resolver uses the cluster's DNS.
 * As CoreDNS' plugin loop, it sends a query with a random name that no other client uses.
 */
import { randomBytes } from "node:crypto";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { encodeName } from "./encode-record.ts";
import type { Forwarder } from "./forwarder.ts";
import type { DnsMetrics } from "./metrics.ts";
import { classIn, types } from "./protocol.ts";

export interface LoopDetector {
  /** Whether the name is that of the detector's query. */
  saw(name: string): boolean;
  /** While true nothing is to be forwarded. */
  readonly isLoop: boolean;
  /** Asks until `signal` is aborted: often while there is a loop, so that its end is noticed. */
  run(forwarder: Forwarder, signal: AbortSignal): Promise<void>;
}

interface LoopDetectorOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: DnsMetrics;
}

const loopPeriodMs = 10_000;
const usualPeriodMs = 60_000;

export function newLoopDetector({ clock, log, metrics }: LoopDetectorOptions): LoopDetector {
  let requested = "";
  let wasSeen = false;
  let isLoop = false;

  const check = async (forwarder: Forwarder): Promise<void> => {
    wasSeen = false;
    requested = `${randomBytes(12).toString("hex")}.loop-check.invalid`;
    const type = Buffer.from([0, types.HINFO, 0, classIn]);
    const question = Buffer.concat([encodeName(requested), type]);
    const probe = { id: 0, recursionDesired: true, checkingDisabled: false, edns: undefined };
    // Whether there is an answer does not matter.
    await Promise.resolve(forwarder.forward({ ...probe, name: requested, type: types.HINFO, class: classIn, question })).catch(
      () => {},
    );
    if (wasSeen && !isLoop) {
      log.error(
        "DNS forwarding loop: the node's resolver sends queries to this server; nothing is forwarded until that ends. Set --resolv-conf to a file with other name servers",
        undefined,
      );
    } else if (!wasSeen && isLoop) log.info("forwarded DNS queries no longer come back");
    isLoop = wasSeen;
    metrics.loop(isLoop);
  };

  return {
    saw(name) {
      if (requested === "" || name !== requested) return false;
      wasSeen = true;
      return true;
    },
    get isLoop() {
      return isLoop;
    },
    async run(forwarder, signal) {
      while (!signal.aborted) {
        await check(forwarder);
        await clock.sleep(isLoop ? loopPeriodMs : usualPeriodMs, signal).catch(() => {});
      }
    },
  };
}
