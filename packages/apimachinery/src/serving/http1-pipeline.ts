import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

interface Waiting {
  readonly request: IncomingMessage;
  /** undefined for an upgrade. */
  readonly response: ServerResponse | undefined;
  readonly serve: () => void;
}

/** Number of pipelined requests at which reading stops. */
const mostWaiting = 16;

/**
 * Serves pipelined requests of one HTTP/1.1 connection sequentially. Node emits all requests it finds in a chunk and would run
 * their handlers concurrently.
 * Source: Go net/http server.go, conn.serve
 */
export class Http1Pipeline {
  readonly #socket: Socket;
  #current: Waiting | undefined;
  /** The last request received; it may be answered already. */
  #last: Waiting | undefined;
  #waiting: Waiting[] = [];
  #isPaused = false;
  /** Set when parsing has failed; called when all earlier requests are answered. */
  #onFailed: ((isAnswered: boolean) => void) | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.once("close", () => {
      this.#current = undefined;
      this.#waiting = [];
    });
  }

  /** Calls `serve` once the connection's earlier requests were answered. Pauses the socket while too many requests wait. */
  add(request: IncomingMessage, response: ServerResponse, serve: () => void): void {
    this.#push({ request, response, serve });
    if (this.#waiting.length < mostWaiting || this.#isPaused) return;
    this.#isPaused = true;
    this.#socket.on("resume", this.#pause); // Node resumes the socket after each request body
    this.#pause();
  }

  /**
   * Adds an upgrade, which is the last request of its connection. Destroys the connection if it is paused because of too many
   * requests.
   */
  addUpgrade(request: IncomingMessage, serve: () => void): void {
    // Node has removed the listeners that would resume a paused socket.
    if (this.#isPaused) this.#socket.destroy();
    else this.#push({ request, response: undefined, serve });
  }

  /** Reports that the current request is answered. */
  answered(): void {
    this.#current = undefined;
    if (this.#socket.destroyed) return;
    const next = this.#waiting.shift();
    if (this.#waiting.length === 0 && this.#isPaused) {
      this.#isPaused = false;
      this.#socket.off("resume", this.#pause);
      this.#socket.resume();
    }
    if (next !== undefined) this.#serve(next);
    else this.#onFailed?.(false);
  }

  /**
   * Reports a parse error.
   * @param refuse called after all earlier requests are answered; `isAnswered` is true when a response to the broken request was
   * already started
   */
  fail(refuse: (isAnswered: boolean) => void): void {
    const isBody = this.#last?.request.complete === false;
    if (isBody && this.#waiting.at(-1) === this.#last) this.#waiting.pop();
    else if (isBody || this.#current === undefined) {
      refuse(isBody && this.#last?.response?.headersSent === true);
      return;
    }
    this.#onFailed = refuse;
  }

  #push(one: Waiting): void {
    this.#last = one;
    if (this.#current === undefined) this.#serve(one);
    else this.#waiting.push(one);
  }

  #serve(one: Waiting): void {
    this.#current = one;
    one.serve();
  }

  readonly #pause = (): void => {
    this.#socket.pause();
  };
}
