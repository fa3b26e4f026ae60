require 'action_controller/railtie'
require 'rack/handler/webrick'
require 'webrick'

class App < Rails::Application
  config.eager_load = true
  config.logger = Logger.new(nil)
  config.secret_key_base = 'x'
  config.consider_all_requests_local = false
  routes.append do
    post '/login', to: 'reached#login'
    get '/api/v1/export/:id', to: 'reached#export'
    match '/admin/*rest', to: 'reached#admin', via: :all
  end
end

class ReachedController < ActionController::API
  %w[login export admin].each do |name|
    define_method(name) do
      headers['X-Reached'] = name
      render plain: 'reached'
    end
  end
end

App.initialize!
Rack::Handler::WEBrick.run(
  App,
  Host: '127.0.0.1', Port: Integer(ENV.fetch('PORT')), AccessLog: [], Logger: WEBrick::Log.new(File::NULL)
)
