import { ConnectionError, errorCodes, MAX_FRAME_BYTES, MAX_WINDOW, settingIds } from './frames.ts'
import type { Http2Output, OutgoingStream } from './output/output.ts'

const SETTING_BYTES = 6
/** Maximum settings in one SETTINGS frame. Fewer are registered. */
const MAX_SETTINGS = 32

/**
 * Applies the SETTINGS of a client (RFC 9113 section 6.5.2). The settings for larger frames and for pushes are only checked; the one for
 * the size of lists is ignored.
 *
 * @throws {ConnectionError}
 */
export function applySettings<Stream extends OutgoingStream>(
  payload: Buffer,
  output: Pick<Http2Output<Stream>, 'resizeTable' | 'setInitialWindow'>,
  open: ReadonlyMap<number, Stream>,
): void {
  if (payload.length % SETTING_BYTES !== 0)
    throw new ConnectionError(errorCodes.frameSizeError, 'SETTINGS length is not a multiple of 6')
  if (payload.length > MAX_SETTINGS * SETTING_BYTES)
    throw new ConnectionError(errorCodes.enhanceYourCalm, 'too many settings in one SETTINGS frame')
  let initialWindow: number | undefined
  for (let at = 0; at < payload.length; at += SETTING_BYTES) {
    const value = payload.readUInt32BE(at + 2)
    switch (payload.readUInt16BE(at)) {
      case settingIds.headerTableSize:
        output.resizeTable(value)
        break
      case settingIds.enablePush:
        if (value > 1)
          throw new ConnectionError(errorCodes.protocolError, 'SETTINGS_ENABLE_PUSH is neither 0 nor 1')
        break
      case settingIds.initialWindowSize:
        if (value > MAX_WINDOW)
          throw new ConnectionError(errorCodes.flowControlError, 'flow-control window above 2^31-1')
        initialWindow = value
        break
      case settingIds.maxFrameSize:
        if (value < MAX_FRAME_BYTES || value >= 2 ** 24)
          throw new ConnectionError(errorCodes.protocolError, 'invalid SETTINGS_MAX_FRAME_SIZE')
        break
      default:
    }
  }
  // Once, even if the frame repeats the setting, because each stream is changed.
  if (initialWindow !== undefined) output.setInitialWindow(initialWindow, open.values())
}
