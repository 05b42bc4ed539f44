/**
 * How this server proves to others who it is: to aggregated servers that it is the front proxy (--proxy-client-cert-file), to kubelets and
 * to etcd. The files are read again whenever they change.
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
  return watchedKeyPair("the front proxy", certFile, keyFile, clock, log);
}

/** The same for another purpose. @param purpose for the log */
export function watchedKeyPair(purpose: string, certFile: string, keyFile: string, clock: Clock, log: Logger): ProxyCertificate {
  if (certFile === "" || keyFile === "") return { current: undefined, close() {} };
  let current = readKeyPair(certFile, keyFile);
  const watcher = watchFiles(
    [certFile, keyFile],
    () => {
      try {
        current = readKeyPair(certFile, keyFile);
        log.info("a client certificate was read again", { purpose, certFile });
      } catch (err) {
        log.error("a client certificate cannot be read, the one before it stays", err, { purpose, certFile });
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
