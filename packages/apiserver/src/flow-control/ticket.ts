import type { Classified } from "./flow-rules.ts";
import type { FlowMetrics } from "./metrics.ts";
import type { Queue } from "./queue.ts";
import type { WorkEstimate } from "./work-estimate.ts";
import { maxSeats } from "./work-estimate.ts";

export interface TicketRequest {
  /** Name of the flow schema. */
  readonly schema: string;
  /** The flow distinguisher: a user, a namespace, or empty. */
  readonly flow: string;
  readonly work: WorkEstimate;
  readonly counted: FlowMetrics;
  /** Shown on the debug pages. */
  readonly requested: Classified & { readonly receivedMs: number };
}

interface Office {
  finish(ticket: Ticket): void;
  cancel(ticket: Ticket): void;
}

/** One request at a priority level, from its arrival until it has finished. */
export class Ticket {
  state: "waiting" | "executing" | "refused" | "done" = "waiting";
  readonly request: TicketRequest;
  readonly arrivalMs: number;
  readonly arrivalR: number;
  readonly seats: number;
  /** Estimated seat-seconds. */
  readonly work: number;
  startMs = 0;
  /** undefined at a level without queues. */
  queue: Queue<Ticket> | undefined;
  /** Called once, for a ticket that had to wait, with whether the request is dispatched. */
  decided: ((runs: boolean) => void) | undefined;
  readonly #office: Office;

  constructor(office: Office, request: TicketRequest, arrivalMs: number, arrivalR: number, serviceSeconds: number) {
    const { work } = request;
    this.#office = office;
    this.request = request;
    this.arrivalMs = arrivalMs;
    this.arrivalR = arrivalR;
    this.seats = maxSeats(work);
    this.work = work.initialSeats * serviceSeconds + (work.finalSeats * work.additionalMs) / 1000;
  }

  decide(runs: boolean): void {
    if (!runs) this.state = "refused";
    this.decided?.(runs);
  }

  finish(): void {
    this.#office.finish(this);
  }

  cancel(): void {
    this.#office.cancel(this);
  }
}
