-- Follows each connection, and shows its frames below what Wireshark shows of the connection itself.

local message_field = register(ProtoField.string("pgoutput.message", "message", base.UNICODE, "The kind of message."))
local state_field = register(ProtoField.string("pgoutput.state", "state", base.UNICODE, "Where in the stream it is."))
local malformed =
  ProtoExpert.new("pgoutput.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
local unexpected =
  ProtoExpert.new("pgoutput.unexpected", "Out of sequence", expert.group.SEQUENCE, expert.severity.WARN)

proto.fields = fields
proto.experts = {malformed, unexpected}

local conversations, contexts = {}, {}

function proto.init()
  conversations, contexts = {}, {}
end

-- A context says what is known when a PDU comes: the options (none outside replication), whether they are assumed,
-- whether messages of this plugin come, and the state (none where it is not known). It is never changed, so that
-- frames can be shown again, in any order.
local function conversation_of(stream)
  local assumed = {given = preferred(), assumed = true, logical = true}
  conversations[stream] = conversations[stream] or {relations = {}, context = assumed}
  return conversations[stream]
end

local function started(query)
  if not query:upper():find("^%s*START_REPLICATION") then
    return {}
  end
  local given, logical = asked(query)
  return {given = given, logical = logical, state = STATES[1]}
end

local function followed(context, message)
  if not message.enters and not message.steps then
    return context
  end
  local here = message.steps and context.state and message.steps[context.state.name]
  local state = STATES[message.enters or here]
  return {given = context.given, logical = true, assumed = context.assumed, state = state}
end

local function show_fault(item, fault)
  if fault then
    item:add_proto_expert_info(malformed, string.format("%s at byte %d: %s", fault.path, fault.at, fault.text))
  end
end

local function show_state(item, bytes, context, state)
  local shown = item:add(state_field, bytes:range(0, 0), state and state.name or ""):set_generated()
  local text = state and state.name .. (state.about and " (" .. state.about .. ")" or "") or "unknown"
  shown:set_text(string.format("state: %s; %s", text, options_in_words(context.given)))
end

local function show_no_message(bytes, tree)
  local text = bytes:len() > 0 and "the first byte is no tag of a message" or "it is empty"
  tree:add(message_field, bytes, ""):set_text("No message"):add_proto_expert_info(malformed, text)
  return "no message"
end

-- Show the message in a frame; return its name, and the context of the next one.
local function show_message(bytes, visit, context, tree)
  local message = tagged(MESSAGES, bytes)
  if not message then
    return show_no_message(bytes, tree), context
  end
  local state = context.state or likely_state(bytes, message, context.given)
  local item = tree:add(message_field, bytes, message.name):set_text(message.name)
  show_state(item, bytes, context, state)
  local relation_of = relations_before(visit.relations, visit.place)
  local cursor, fault = attempt(bytes, message, context.given, state, relation_of, item)
  show_fault(item, fault)
  if state and not message.states[state.name] then
    item:add_proto_expert_info(unexpected, string.format("%s does not come in the state %s", message.name, state.name))
  end
  local oid, relation = described(message, fault and {} or cursor.found, visit.place)
  if oid and visit.first then
    keep(visit.relations, oid, relation)
  end
  relation = relation or cursor.relation
  local name = message.name .. (relation and " " .. relation.name or "")
  item:set_text(name)
  return name, followed(context, message)
end

-- Show the frame in a CopyData; return the context of the next one.
local function show_frame(bytes, visit, context)
  local frame = tagged(FRAMES, bytes)
  if not frame or (context.assumed and not plausible(bytes, context.given)) then
    return context
  end
  local top = visit.tree:add(proto, bytes)
  local item = top:add(message_field, bytes, frame.name):set_text(frame.name)
  local cursor, fault = attempt(bytes, frame, context.given, nil, no_relation, item)
  show_fault(item, fault)
  local name, after = frame.name, context
  if not fault and cursor.payload and context.logical then
    name, after = show_message(cursor.payload, visit, context, top)
  end
  top:append_text(", " .. name)
  table.insert(visit.names, name)
  return after
end

-- Show a message of the connection, which begins with its tag and its length; return the context of the next one.
local function show(range, visit, context)
  local tag = range:range(0, 1):uint()
  if tag == QUERY.tag and range:len() > QUERY.header then
    return started(range:range(QUERY.header):stringz())
  elseif tag == COPY_DATA.tag and range:len() > COPY_DATA.header and context.given then
    return show_frame(range:range(COPY_DATA.header), visit, context)
  end
  return context
end

local LISTED = 8 -- names in the column Info

local function list(pinfo, names)
  if #names > 0 then
    local more = #names > LISTED and string.format(", and %d more", #names - LISTED) or ""
    pinfo.cols.protocol = "PGOUTPUT"
    pinfo.cols.info:clear_fence()
    pinfo.cols.info = table.concat(names, ", ", 1, math.min(#names, LISTED)) .. more
  end
end

-- Wireshark's own dissector of PostgreSQL puts the messages of a connection together: one item of its for each.
local items_of_pgsql, streams = Field.new("pgsql"), Field.new("tcp.stream")
local sequences, following = Field.new("tcp.seq"), Field.new("tcp.nxtseq")
local NUMBERS = 4294967296 -- of TCP

-- Forget the state where bytes of a side are missing: in the capture, or because frames are shown in another order.
local function follow_bytes(conversation, side, some)
  local sequence, after = sequences(), following()
  if not sequence or not after then
    return
  end
  local expected = conversation[side] or sequence.value
  local ahead = (sequence.value - expected) % NUMBERS
  if ahead ~= 0 and (some or ahead < NUMBERS / 2) then
    local known = conversation.context
    conversation.context = {given = known.given, logical = known.logical, assumed = known.assumed}
  end
  if some or (after.value - expected) % NUMBERS < NUMBERS / 2 then
    conversation[side] = after.value
  end
end

function proto.dissector(_, pinfo, tree)
  local items, stream = {items_of_pgsql()}, streams()
  if not stream or (#items == 0 and not conversations[stream.value]) then
    return
  end
  with_descriptions = proto.prefs.descriptions
  local conversation, names = conversation_of(stream.value), {}
  local first = contexts[pinfo.number] == nil
  local here = contexts[pinfo.number] or {}
  contexts[pinfo.number] = here
  if first then
    follow_bytes(conversation, pinfo.src_port, #items > 0)
  end
  for i, item in ipairs(items) do
    local visit = {tree = tree, names = names, first = first, relations = conversation.relations}
    visit.place = pinfo.number + i / 65536
    here[i] = here[i] or conversation.context
    local after = show(item.range, visit, here[i])
    conversation.context = first and after or conversation.context
  end
  list(pinfo, names)
end

register_postdissector(proto)
