import type { Client } from "@coxswain/apimachinery/client/client";
import type { DecisionReader } from "@coxswain/apimachinery/decisions/decision";
import type { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { serverLeasesResource } from "../bootstrap/server-leases.ts";
import { Questions } from "../registry/diagnostics/questions.ts";
import { ClusterDecisions } from "../registry/diagnostics/reader.ts";
import { storedAnswers, storedQuestions } from "../registry/diagnostics/stored.ts";
import type { StorageSet } from "../storage/open.ts";

interface DiagnosticsOptions {
  readonly storage: Pick<StorageSet, "for">;
  /** Decisions of this server. */
  readonly decisions: DecisionLog;
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

export interface Diagnostics {
  readonly questions: Questions;
  readonly reader: DecisionReader;
}

/** Opens the storages of diagnostic questions and answers, and follows the questions of all servers until this one stops. */
export function openDiagnostics(options: DiagnosticsOptions): Diagnostics {
  const { storage, decisions, client, clock, log, signal } = options;
  const questions = new Questions({
    questions: storage.for(storedQuestions),
    answers: storage.for(storedAnswers),
    ...{ decisions, clock, log },
  });
  void questions.run(signal);
  const servers = storage.for(serverLeasesResource);
  return { questions, reader: new ClusterDecisions({ questions, decisions, client, servers: () => servers.count(), clock }) };
}
