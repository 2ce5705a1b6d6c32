/**
 * Positions are resume tokens of change streams. A token is in hexadecimal and begins with the time of its event, so that
 * tokens can be compared and sorted (https://www.mongodb.com/docs/manual/changeStreams/#resume-tokens). A position that
 * is only this beginning is the place before all events of that time.
 */
import { Timestamp } from "mongodb";
import type { Position } from "../port.ts";

const TIME = /^82([0-9A-F]{8})([0-9A-F]{8})/;
const hex = (value: number) => value.toString(16).toUpperCase().padStart(8, "0");

export const isPosition = (position: unknown): position is Position =>
  typeof position === "string" && position.length <= 1024 && /^82[0-9A-F]{16,}$/.test(position);

export const secondsOf = (position: Position): number => Number.parseInt(TIME.exec(position)?.[1] ?? "", 16);

/** After all events of that time. */
export const positionAfter = (time: Timestamp): Position =>
  `82${hex(time.getHighBitsUnsigned())}${hex(time.getLowBitsUnsigned() + 1)}`;

/** The option that makes a change stream begin at the position. */
export function beginAfter(position: Position) {
  const [time = "", seconds = "", increment = ""] = TIME.exec(position) ?? [];
  return time.length === position.length
    ? { startAtOperationTime: new Timestamp({ t: Number.parseInt(seconds, 16), i: Number.parseInt(increment, 16) }) }
    : { resumeAfter: { _data: position } };
}
