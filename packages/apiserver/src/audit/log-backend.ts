/**
 * Writes events as lines to a file or standard output, as JSON or in the legacy one-line format.
 * Source: k8s.io/apiserver plugin/pkg/audit/log
 */

import { closeSync, openSync } from "node:fs";
import { dirname } from "node:path";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import type { AuditBackend, PluginError } from "./backend.ts";
import { type AuditVersion, eventJson } from "./event.ts";
import { newRotatingFile, type RotatingFile, type RotatingFileOptions } from "./rotating-file.ts";

interface LogBackendOptions extends RotatingFileOptions {
  /** `path` `-` selects standard output. */
  readonly format: "json" | "legacy";
  /** API version of the JSON format. */
  readonly version: AuditVersion;
}

const plugin = "log";
const newline = Buffer.from("\n");

/** @throws Error when the file cannot be opened. */
export function newLogBackend(options: LogBackendOptions, clock: Clock, fail: PluginError): AuditBackend {
  const out = options.path === "-" ? standardOutput : openedFile(options, clock, (err) => fail(plugin, err, []));
  return {
    async process(records) {
      const lines = records.map((record) =>
        options.format === "json" ? eventJson(record, options.version) : Buffer.from(record.legacy),
      );
      const written = await Promise.allSettled(lines.map((line) => out.write(Buffer.concat([line, newline]))));
      let complete = true;
      for (const [i, result] of written.entries()) {
        if (result.status === "fulfilled") continue;
        complete = false;
        fail(plugin, result.reason, records.slice(i, i + 1));
      }
      return complete;
    },
    stop: () => out.close(),
  };
}

/** Opens the file once up front, so that an unwritable path fails the startup instead of losing every event. */
function openedFile(options: RotatingFileOptions, clock: Clock, onError: (err: unknown) => void): RotatingFile {
  makeFolderSync(dirname(options.path), 0o700);
  closeSync(openSync(options.path, "a", 0o600));
  return newRotatingFile(options, clock, onError);
}

const standardOutput: RotatingFile = {
  write: (text) =>
    new Promise((resolve, reject) => {
      process.stdout.write(text, (err) => (err ? reject(err) : resolve()));
    }),
  close: async () => {},
};
