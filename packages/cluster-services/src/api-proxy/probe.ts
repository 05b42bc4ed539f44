import type { ConnectionOptions, TLSSocket } from "node:tls";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { connectTls } from "@coxswain/apimachinery/transport/connect";
import { ClientConnection } from "@coxswain/apimachinery/transport/http2/client/connection";
import { encodeFields } from "@coxswain/apimachinery/transport/http2/wire/hpack";
import type { ServerState } from "./choose.ts";

/** A server that has not answered for this many ticks is dead. */
const mostMissed = 4;
/** Ticks between requests to `/readyz`, which cost the server more than pings. */
const readinessTicks = 10;
/** Number of failed readiness checks in a row after which the server counts as dead. */
const mostRefusals = 3;
/** Ticks until an attempt to connect is given up: the kernel would wait for minutes. */
const connectTicks = 15;
/** Number of answered pings in a row after which a dead server is used again. */
const answersToTrust = 5;
const windows = { streamWindowBytes: 65_535, connectionWindowBytes: 1 << 20 };

interface ProbeOptions {
  /** `192.0.2.11:6443` */
  readonly address: string;
  readonly host: string;
  readonly port: number;
  readonly tls: () => Promise<ConnectionOptions>;
  readonly changed: () => void;
}

/**
 * Probes one API server over one HTTP/2 connection: liveness by a PING at every tick, readiness less often. Ticks are counted,
 * not milliseconds: a pause of this process must not make a server seem dead.
 */
export class Probe {
  readonly #options: ProbeOptions;
  #state: ServerState = "unknown";
  #reason = "it was not probed yet";
  #socket: TLSSocket | undefined;
  #connection: ClientConnection | undefined;
  #isConnecting = false;
  #isClosed = false;
  #isLeaving = false;
  #ticksConnecting = 0;
  #ticksToReadiness = 0;
  /** Ticks since the last answer. */
  #missed = 0;
  /** Answers since the last one was missing. */
  #answered = 0;
  /** Failed readiness checks in a row. */
  #refusals = 0;

  constructor(options: ProbeOptions) {
    this.#options = options;
    this.#connect();
  }

  get state(): ServerState {
    return this.#state;
  }

  /** Why it is not ready. */
  get reason(): string {
    return this.#reason;
  }

  /** Called at the period of probes: sends a ping, now and then checks readiness, and reconnects after a failure. */
  tick(): void {
    this.#missed++;
    if (this.#missed >= mostMissed) this.#fail("it does not answer");
    if (this.#connection !== undefined) {
      this.#connection.ping(() => this.#onAnswer());
      if (--this.#ticksToReadiness < 0) this.#requestReadiness(this.#connection);
    } else if (!this.#isConnecting) this.#connect();
    else if (++this.#ticksConnecting >= connectTicks) this.#socket?.destroy(new Error("it does not accept a connection"));
  }

  close(): void {
    this.#isClosed = true;
    this.#socket?.destroy();
  }

  #connect(): void {
    this.#isConnecting = true;
    this.#ticksConnecting = 0;
    void this.#options.tls().then(
      (tls) => this.#dial(tls),
      (err: Error) => this.#lost(err.message),
    );
  }

  #dial(tls: ConnectionOptions): void {
    if (this.#isClosed) return;
    const { host, port } = this.#options;
    let reason = "it closed the connection";
    let socket: TLSSocket;
    try {
      socket = connectTls({ ...tls, host, port, ALPNProtocols: ["h2"] });
    } catch (err) {
      this.#lost(messageOf(err));
      return;
    }
    this.#socket = socket.setNoDelay(true);
    socket.once("error", (err) => {
      reason = err.message;
    });
    socket.once("close", () => this.#lost(reason));
    socket.once("secureConnect", () => {
      this.#isConnecting = false;
      this.#ticksToReadiness = 0;
      this.#connection = new ClientConnection(socket, windows, {
        ready: () => this.#onAnswer(),
        leaving: () => {
          this.#isLeaving = true;
          this.#set("leaving", "it ends");
        },
        closed: () => socket.destroy(),
      });
    });
  }

  #lost(reason: string): void {
    this.#isConnecting = false;
    this.#socket = undefined;
    this.#connection = undefined;
    if (!this.#isClosed) this.#fail(reason);
  }

  /** The connections of a terminating server stay open: it finishes its requests. */
  #fail(reason: string): void {
    this.#answered = 0;
    if (!this.#isLeaving) this.#set("dead", reason);
  }

  #onAnswer(): void {
    this.#missed = 0;
    this.#answered++;
    const isTrusted = this.#state === "unknown" || this.#state === "ready" || this.#answered >= answersToTrust;
    if (this.#connection?.maxStreams === 0 || !isTrusted || this.#refusals > 0) return;
    this.#isLeaving = false;
    this.#set("ready", "");
  }

  /** Any response below 500 means that the server works, including 401 and 403. */
  #requestReadiness(connection: ClientConnection): void {
    if (connection.maxStreams === 0) return;
    this.#ticksToReadiness = readinessTicks;
    const request = [":method", "GET", ":scheme", "https", ":authority", this.#options.address, ":path", "/readyz"];
    let status = 0;
    connection.request(encodeFields([...request, "user-agent", "coxswain-services/api-proxy"]), noBytes, true, {
      fields(fields) {
        status ||= Number(fields.get(":status"));
      },
      data() {},
      closed: () => this.#onReadiness(status),
    });
  }

  /** @param status 0: the connection was lost */
  #onReadiness(status: number): void {
    if (status === 0) return;
    this.#refusals = status < 500 ? 0 : this.#refusals + 1;
    if (this.#refusals > 0 && this.#state !== "dead" && !this.#isLeaving)
      this.#set(this.#refusals < mostRefusals ? "unready" : "dead", `/readyz answers ${status}`);
  }

  #set(state: ServerState, reason: string): void {
    this.#reason = reason;
    if (state === this.#state) return;
    this.#state = state;
    this.#options.changed();
  }
}

const noBytes = Buffer.alloc(0);
