require 'sinatra'
require 'webrick'

set :environment, :production
set :server, 'webrick'
set :bind, '127.0.0.1'
set :port, Integer(ENV.fetch('PORT'))
set :logging, false
set :quiet, true
set :server_settings, AccessLog: [], Logger: WEBrick::Log.new(File::NULL)

def reached(name)
  headers 'X-Reached' => name
  'reached'
end

post('/login') { reached 'login' }
get('/api/v1/export/:id') { reached 'export' }
%i[get post put patch delete options].each { |verb| send(verb, '/admin/*') { reached 'admin' } }
