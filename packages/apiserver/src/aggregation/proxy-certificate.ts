/**
 * Client certificates of this server with hot reload: as front proxy towards aggregated servers (--proxy-client-cert-file),
 * towards kubelets and towards etcd.
 * Source: k8s.io/apiserver pkg/server/dynamiccertificates/dynamic_serving_content.go
 */
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { watchFiles } from "@coxswain/apimachinery/serving/file-watch";

/** Certificate chain and private key, PEM. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface ProxyCertificate {
  /** A new object after each reload; undefined when the flags are not set. */
  readonly current: KeyPair | undefined;
  close(): void;
}

/** @throws Error when the files are unreadable or do not match; `current` is undefined when one of the paths is "". */
export function watchedProxyCertificate(certFile: string, keyFile: string, clock: Clock, log: Logger): ProxyCertificate {
  return watchedKeyPair("the front proxy", certFile, keyFile, clock, log);
}

/** Like `watchedProxyCertificate`, for other certificates. @param purpose named in log messages */
export function watchedKeyPair(purpose: string, certFile: string, keyFile: string, clock: Clock, log: Logger): ProxyCertificate {
  if (certFile === "" || keyFile === "") return { current: undefined, close() {} };
  let current = readKeyPair(certFile, keyFile);
  const watcher = watchFiles(
    [certFile, keyFile],
    () => {
      try {
        current = readKeyPair(certFile, keyFile);
        log.info("reloaded a client certificate", { purpose, certFile });
      } catch (err) {
        log.error("cannot reload a client certificate; keeping the previous one", err, { purpose, certFile });
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

/** @throws Error when the files are unreadable, invalid or do not match. */
export function readKeyPair(certFile: string, keyFile: string): KeyPair {
  const pair = { cert: readFileSync(certFile, "utf8"), key: readFileSync(keyFile, "utf8") };
  // An empty text, as of a file that is being replaced, is not an error for Node: the pair would be used without it.
  if (pair.cert.trim() === "") throw new Error("tls: failed to find any PEM data in certificate input");
  if (pair.key.trim() === "") throw new Error("tls: failed to find any PEM data in key input");
  createSecureContext(pair);
  return pair;
}
