import { readFile, stat } from "node:fs/promises";
import { isIP } from "node:net";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";

export interface Upstream {
  readonly address: string;
  readonly port: number;
}

/** Name servers of a resolv.conf, in order, without duplicates. Source: resolv.conf(5) */
export function parseResolvConf(text: string): Upstream[] {
  const addresses = text.split("\n").flatMap((line) => {
    const [keyword, address = ""] = line.trim().split(/\s+/);
    return keyword === "nameserver" && isIP(address) !== 0 ? [address] : [];
  });
  return [...new Set(addresses)].map((address) => ({ address, port: 53 }));
}

const checkMs = 5_000;

/**
 * The upstream servers of a resolv.conf that may change at any time. A file that is missing or unreadable has none.
 * @returns a function that looks at the file at most every 5 seconds
 */
export function watchedUpstreams(path: string, clock: Clock): () => Promise<readonly Upstream[]> {
  let known: readonly Upstream[] = [];
  let changedAt = "";
  let current: Promise<readonly Upstream[]> | undefined;
  let checkedAt = 0;
  const read = async (): Promise<readonly Upstream[]> => {
    try {
      const { mtimeMs, ino, size } = await stat(path);
      const version = `${mtimeMs} ${ino} ${size}`;
      if (version !== changedAt) {
        known = parseResolvConf(await readFile(path, "utf8"));
        changedAt = version;
      }
    } catch {
      known = [];
      changedAt = "";
    }
    return known;
  };
  return () => {
    if (current === undefined || clock.monotonic() - checkedAt >= checkMs) {
      checkedAt = clock.monotonic();
      current = read();
    }
    return current;
  };
}
