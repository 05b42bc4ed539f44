import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";
import type { AgentEvents } from "../events.ts";

/** A process that the kernel killed because the machine, not a cgroup, was out of memory. */
export interface SystemOom {
  readonly process: string;
  readonly pid: number;
}

interface KernelLogOptions {
  /** Default `/dev/kmsg`; overridden in tests. */
  path?: string | undefined;
  clock: Clock;
  log: Logger;
  reportNodeEvent: AgentEvents["node"];
}

const pollMs = 5_000;
/** The kernel returns one record per read, of at most 8 KiB. */
const recordBytes = 8_192;
/** Records per poll; the kernel's buffer holds fewer. */
const mostRecords = 100_000;

/**
 * Reports each process that was killed because the machine was out of memory, from the kernel log, as an event of the node,
 * including those before the start that the kernel still remembers.
 * Source: pkg/kubelet/oom/oom_watcher_linux.go, cadvisor utils/oomparser
 */
export async function watchSystemOoms(options: KernelLogOptions, signal: AbortSignal): Promise<void> {
  const { path = "/dev/kmsg", clock, log, reportNodeEvent } = options;
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (err) {
    log.warn("cannot read the kernel log; there will be no events for processes killed by the kernel", { err: String(err) });
    return;
  }
  try {
    const parse = newOomParser(({ process, pid }) =>
      reportNodeEvent("Warning", "SystemOOM", `System OOM encountered, victim process: ${process}, pid: ${pid}`),
    );
    while (!signal.aborted) {
      await readRecords(file, parse).catch((err: unknown) => log.error("cannot read the kernel log; trying again", err));
      await clock.sleep(pollMs, signal).catch(() => undefined);
    }
  } finally {
    await file.close();
  }
}

async function readRecords(file: FileHandle, parse: (record: string) => void): Promise<void> {
  const buffer = Buffer.alloc(recordBytes);
  for (let i = 0; i < mostRecords; i++) {
    try {
      const { bytesRead } = await file.read(buffer, 0, recordBytes, null);
      if (bytesRead === 0) return;
      parse(buffer.toString("utf8", 0, bytesRead));
    } catch (err) {
      const code = errorCode(err);
      if (code === "EPIPE") continue; // records were overwritten before they were read; the next read continues after them
      if (code === "EAGAIN") return;
      throw err;
    }
  }
}

/**
 * Parses records of /dev/kmsg: `priority,sequence,microseconds,flags;message`. A report begins with "invoked oom-killer:" and
 * ends with "Killed process"; a line in between names the cgroup when its limit, not the machine's memory, was reached.
 * @returns a function that takes one record
 */
export function newOomParser(onOom: (oom: SystemOom) => void): (record: string) => void {
  let isOpen = false;
  let ofCgroup = false;
  return (record) => {
    for (const line of record.split("\n")) {
      const message = line.slice(line.indexOf(";") + 1);
      if (message.includes("invoked oom-killer:")) {
        isOpen = true;
        ofCgroup = false;
      } else if (isOpen) {
        if (/oom-kill:.*,oom_memcg=|killed as a result of limit of |^Memory cgroup out of memory/.test(message)) ofCgroup = true;
        const killed = /Killed process (\d+) \((.+?)\)/.exec(message);
        if (killed === null) continue;
        isOpen = false;
        if (!ofCgroup) onOom({ pid: Number(killed[1]), process: killed[2]! });
      }
    }
  };
}
