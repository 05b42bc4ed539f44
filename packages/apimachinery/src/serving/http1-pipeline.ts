import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

interface Waiting {
  readonly request: IncomingMessage;
  /** undefined: an upgrade. */
  readonly response: ServerResponse | undefined;
  readonly serve: () => void;
}

/** A client that has sent so many requests ahead is not read until they are served. */
const mostWaiting = 16;

/**
 * The requests of one connection of node's HTTP/1.1 server, served one after the other as they came. Node hands over all that it finds in
 * what was read, and would have a handler run for each of them.
 * Source: Go net/http server.go, conn.serve
 */
export class Http1Pipeline {
  readonly #socket: Socket;
  #current: Waiting | undefined;
  /** Of those that came; it may be answered already. */
  #last: Waiting | undefined;
  #waiting: Waiting[] = [];
  #isPaused = false;
  /** The connection cannot be read any more; called when all that came before is answered. */
  #onFailed: ((isAnswered: boolean) => void) | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.once("close", () => {
      this.#current = undefined;
      this.#waiting = [];
    });
  }

  add(request: IncomingMessage, response: ServerResponse, serve: () => void): void {
    this.#push({ request, response, serve });
    if (this.#waiting.length < mostWaiting || this.#isPaused) return;
    this.#isPaused = true;
    this.#socket.on("resume", this.#pause); // node resumes it for each request whose body it has read
    this.#pause();
  }

  /** The last request of the connection. Behind so many others that the socket is paused, it ends the connection. */
  addUpgrade(request: IncomingMessage, serve: () => void): void {
    // Node has given up the listeners that would have a paused socket read again.
    if (this.#isPaused) this.#socket.destroy();
    else this.#push({ request, response: undefined, serve });
  }

  /** The request that is served has been answered. */
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
   * What came last cannot be read.
   * @param refuse called after all requests before it are answered; told whether the broken one was answered early, or is being so
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
