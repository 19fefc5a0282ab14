import { describeBus } from '../conformance/describe-bus.ts'
import { makeSqliteEngine } from './under-test.ts'

describeBus(makeSqliteEngine)
