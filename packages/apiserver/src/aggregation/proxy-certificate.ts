/**
 * How this server proves to others that it is the front proxy: --proxy-client-cert-file and --proxy-client-key-file, read
 * again whenever they change.
 * Source: k8s.io/apiserver pkg/server/dynamiccertificates/dynamic_serving_content.go
 */
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { watchFiles } from "@coxswain/apimachinery/serving/file-watch";

/** PEM. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface ProxyCertificate {
  /** Another object whenever it is another pair; undefined without the flags. */
  readonly current: KeyPair | undefined;
  close(): void;
}

/** @throws Error when the files cannot be read or do not belong together; with only one of them there is none. */
export function watchedProxyCertificate(certFile: string, keyFile: string, clock: Clock, log: Logger): ProxyCertificate {
  if (certFile === "" || keyFile === "") return { current: undefined, close() {} };
  let current = readKeyPair(certFile, keyFile);
  const watcher = watchFiles(
    [certFile, keyFile],
    () => {
      try {
        current = readKeyPair(certFile, keyFile);
        log.info("the proxy's client certificate was read again", { certFile });
      } catch (err) {
        log.error("the proxy's client certificate cannot be read, the one before it stays", err, { certFile });
      }
    },
    clock,
  );
  return {
    get current() {
      return current;
    },
    close: () => watcher.close(),
  };
}

export function readKeyPair(certFile: string, keyFile: string): KeyPair {
  const pair = { cert: readFileSync(certFile, "utf8"), key: readFileSync(keyFile, "utf8") };
  createSecureContext(pair);
  return pair;
}
